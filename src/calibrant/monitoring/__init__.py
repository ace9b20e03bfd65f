"""Watching probabilities as labels arrive, and correcting them on the way."""

from .batch import Batch
from .findings import Alarm, Findings, StreamFindings
from .monitor import Monitor
from .online import Asked, OnlineRecalibrator
from .pending import Pending
from .trail import Point

__all__ = ["Alarm", "Asked", "Batch", "Findings", "Monitor", "OnlineRecalibrator", "Pending", "Point", "StreamFindings"]
