"""Watching probabilities as labels arrive, and correcting them on the way."""

from .batch import Batch
from .findings import Alarm, Findings, StreamFindings
from .monitor import Monitor

__all__ = ["Alarm", "Batch", "Findings", "Monitor", "StreamFindings"]
