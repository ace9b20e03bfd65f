"""Reading scores, and saving and loading calibrators: with `reports` and `cli` the only rooms that know of paths."""

from .dataset import Dataset, Rows
from .reading import read

__all__ = ["Dataset", "Rows", "read"]
