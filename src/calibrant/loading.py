"""Loading a saved calibrator: the one place that knows both the file format and every class it may name."""

from __future__ import annotations

import os

from . import registry, selection  # noqa: F401  importing them defines, and so makes known, every map of calibrant
from .calibrator import Calibrator
from .files.saving import read_map


def load(path: str | os.PathLike[str]) -> Calibrator:
    """Read a calibrator that `Calibrator.save` wrote.

    Nothing in the file is run: it may only name classes that are already imported (all of calibrant's are), and its
    parameters, shapes and answers are checked.

    Raises
    ------
    FileProblem
        Where the file cannot be read, is damaged, or is not understood.
    """
    return read_map(path)
