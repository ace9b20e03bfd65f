"""How a fit sees data: a pass turns blocks of rows into a statistic, and statistics of blocks merge."""

from .block import Block
from .data import Data, in_memory, in_passes, in_stream
from .statistic import Rows
from .together import together

__all__ = ["Block", "Data", "Rows", "in_memory", "in_passes", "in_stream", "together"]
