"""A measurement in words."""

from __future__ import annotations

from dataclasses import dataclass

from ...cells.pairs import Pairs
from .intervals import Interval
from .shape import Range, Shape, shape_of
from .testing import CalibrationTest

# The kinds of miscalibration, as said of an event's probabilities and of the top label's.
EVENT = {
    "too_high": "probabilities are too high",
    "too_low": "probabilities are too low",
    "too_extreme": "probabilities are too extreme (over-confident)",
    "too_timid": "probabilities are too timid (under-confident)",
    "upside_down": "probabilities are upside down: the higher they are, the less often the event happens",
    "in_places": "probabilities are wrong in places",
}
TOP_LABEL = {
    "too_high": "over-confident",
    "too_low": "under-confident",
    "too_extreme": "too extreme: over-confident where it is sure, under-confident where it is not",
    "too_timid": "too timid: under-confident where it is sure, over-confident where it is not",
    "upside_down": "upside down: the surer it is, the less often it is right",
    "in_places": "wrong in places",
}


@dataclass(frozen=True)
class Verdict:
    """What a measurement means: in a word for programs ("none" or a kind of `Shape`), and in a sentence."""

    shape: str
    words: str


def verdict_of(
    is_event: bool,
    pairs: Pairs,
    rate: float,
    score: float,
    error: Interval,
    test: CalibrationTest,
    slope: Interval | None = None,
    of: str = "rows",
) -> Verdict:
    """Say whether probabilities are miscalibrated, how, by how much, and what could have gone unnoticed.

    They are called miscalibrated where the test rejects at the level 1 - confidence of the intervals, so that five in
    a hundred calibrated samples are, with 95 % intervals. How they are wrong is `shape_of`'s rule. Where the test does
    not reject and the interval of Cox's slope, if it was measured, leaves one out, the words say so too: the slope sees
    few rows that are far out, which an error of probabilities hardly does.
    """
    if not test.rejects(1 - error.confidence):
        words = f"No evidence of miscalibration in {test.n:,} {of} ({test.p}){_but_slope(slope)}; {_unnoticed(error)}."
        return Verdict("none", words)
    shape = shape_of(pairs)
    kinds = EVENT if is_event else TOP_LABEL
    facts = _facts(shape, is_event, rate, score, of)
    size = f"root mean square error {error.estimate:.3f}{_interval(error)}"
    return Verdict(shape.kind, f"Miscalibrated ({test.p}): {kinds[shape.kind]} ({facts}); {size}.")


def _but_slope(slope: Interval | None) -> str:
    if slope is None or slope.low is None or slope.high is None or slope.low <= 1.0 <= slope.high:
        return ""
    kind = "extreme" if slope.high < 1.0 else "timid"
    return f", but a calibration slope of {slope.estimate:.2f}{_interval(slope)} says that they are too {kind}"


def _unnoticed(error: Interval) -> str:
    words = f"an error of up to {1.0 if error.high is None else error.high:.3f} (root mean square) remains possible"
    return f"{words}, as {error.note}" if error.note else words


def _interval(error: Interval) -> str:
    if error.low is None or error.high is None:
        return ""
    return f" ({round(100 * error.confidence)} % interval {error.low:.3f} to {error.high:.3f})"


def _facts(shape: Shape, is_event: bool, rate: float, score: float, of: str) -> str:
    if shape.kind in ("too_high", "too_low"):
        if is_event:
            return f"the mean probability is {score:.3f}, the event happened in {rate:.3f} of the {of}"
        return f"mean confidence {score:.3f}, accuracy {rate:.3f}"
    return "; ".join(_range(part) for part in shape.ranges)


def _range(part: Range) -> str:
    return f"{part.low:.3g} to {part.high:.3g}: said {part.score:.3f}, came true {part.frequency:.3f}"
