"""How a fit sees data: a pass turns blocks of rows into a statistic, and statistics of blocks merge."""

from .block import Block
from .data import Data, in_column, in_memory, in_passes, in_stream
from .one_score import OneScore
from .statistic import Rows
from .together import together
