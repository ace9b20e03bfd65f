"""How a fit sees data: a pass is a function from a block of rows to a small statistic that adds up."""

from .engine import reduce
from .sample import Sample

__all__ = ["Sample", "reduce"]
