"""Loading a saved calibrator: the one place that knows both the file format and every class it may name."""

from __future__ import annotations

import os

# Importing them defines, and so makes known, every map of calibrant.
from . import registry, selection  # noqa: F401
from .calibrator import Calibrator
from .files.saving import read_map
from .operators import by_group, multi_label, multicalibrated, prior_shift, top_label  # noqa: F401


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
