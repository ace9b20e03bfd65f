"""What a fitted map computes, as a list of plain operations: written once for a map, read by every way to ship it."""

from .functions import keep_top, log_odds, log_softmax, sigmoid, softmax, softplus
from .graph import Formula, Term, as_rows
