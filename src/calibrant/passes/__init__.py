"""How a fit sees data: a pass turns blocks of rows into a statistic, and statistics of blocks merge."""

from .block import Block
from .data import Data, in_memory, in_stream
from .statistic import Rows

__all__ = ["Block", "Data", "Rows", "in_memory", "in_stream", "reduce"]


def reduce(function, block):  # to be deleted once every map is given Data
    """Make one pass over rows that are one block."""
    return function(block)
