"""What measuring found."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import count_of
from ..plain import plain, visible
from .decisions.net_benefit import DecisionCurve
from .estimators.curves import ReliabilityCurve, SmoothCurve
from .inference.group_test import GroupFindings
from .inference.intervals import Interval, wide_words
from .inference.testing import CalibrationTest
from .labelled import LabelFindings

_BY_LABEL = ("observed_expected", "ece_crossfit")  # the figures of each label that are printed
FORMAT = 2  # 2: ends of intervals may be null; norm, note, shape and event_rate are new


@dataclass(frozen=True, eq=False)
class Measurement:
    """What `measure` found.

    Attributes
    ----------
    n, n_classes : int
        Rows, and classes (2 for the probability of one event).
    rate : Interval
        How often the top label is right, or the event happened; also as ``accuracy`` or ``event_rate``.
    confidence : float
        Mean score of the top label, or of the event.
    metrics : dict of Interval
        By name: ece_crossfit first, which is the one to quote; the others for comparison with the literature. Each
        says its norm: ece_crossfit and ece_debiased are root mean squares (norm 2), ece is a mean (norm 1).
    test : CalibrationTest
    curve : ReliabilityCurve
        Of the top label, or of the event.
    class_curves : tuple of ReliabilityCurve
        One a class up to 20 classes; else the 20 classes with the largest binned error.
    shape : str
        "none", or how the probabilities are wrong: "too_high", "too_low", "too_extreme", "too_timid", "upside_down",
        "in_places" (`calibrant.metrics.shape.shape_of` has the rule).
    verdict : str
        What it means, in words.
    profile : str
        For whom it was measured.
    smooth : SmoothCurve or None
        The smooth calibration curve with its band, in the profile "risk".
    decisions : DecisionCurve or None
        Net benefit over thresholds, in the profile "risk".
    groups : dict of Measurement
        By group, where groups were given: intervals of level 1 - (1 - confidence)/G, as there are G looks.
    group_findings : GroupFindings or None
        Gaps by group, the worst of them, and the test that groups differ.
    labels : LabelFindings or None
        In the profile "multilabel": figures by label, their means, and of the number of labels. ``metrics`` are then of
        all known entries together.
    """

    n: int
    n_classes: int
    rate: Interval
    confidence: float
    metrics: dict[str, Interval]
    test: CalibrationTest
    curve: ReliabilityCurve
    class_curves: tuple[ReliabilityCurve, ...]
    shape: str
    verdict: str
    profile: str = "default"
    smooth: SmoothCurve | None = None
    decisions: DecisionCurve | None = None
    groups: dict[str, Measurement] = field(default_factory=dict)
    group_findings: GroupFindings | None = None
    labels: LabelFindings | None = None

    @property
    def is_event(self) -> bool:
        """Whether the probability of one event was measured, not that of the most probable class."""
        return self.curve.view == "event"

    @property
    def subject(self) -> str:
        """What has the probabilities, in words: one event, so many labels, or so many classes."""
        if self.labels is not None:
            return f"{self.n_classes} labels"
        return "one event" if self.is_event else f"{self.n_classes} classes"

    @property
    def rate_name(self) -> str:
        """What ``rate`` is: "accuracy" or "event_rate"."""
        return "event_rate" if self.is_event else "accuracy"

    @property
    def accuracy(self) -> Interval:
        """How often the top label is right; one event has no accuracy."""
        if self.is_event:
            raise AttributeError("one event's probabilities have no accuracy; event_rate is how often it happened")
        return self.rate

    @property
    def event_rate(self) -> Interval:
        """How often the event happened; several classes have no such rate."""
        if not self.is_event:
            raise AttributeError("probabilities of classes have no event rate; accuracy is how often the top is right")
        return self.rate

    @property
    def figures(self) -> dict[str, Interval]:
        """The rate and the metrics, by name."""
        return {self.rate_name: self.rate, **self.metrics}

    @property
    def wide(self) -> str:
        """Which intervals hold more often than they claim, in words; empty where none does."""
        return wide_words(self.figures)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists, strings and numbers; numbers that are not finite as their names."""
        found = {
            "format": FORMAT,
            "n": self.n,
            "n_classes": self.n_classes,
            self.rate_name: asdict(self.rate),
            "confidence": self.confidence,
            "metrics": {name: asdict(interval) for name, interval in self.metrics.items()},
            "test": asdict(self.test),
            "shape": self.shape,
            "verdict": self.verdict,
            "curve": self.curve.to_dict(),
            "class_curves": [curve.to_dict() for curve in self.class_curves],
        }
        extras = {"smooth": self.smooth, "decisions": self.decisions, "group_findings": self.group_findings}
        found |= {name: part.to_dict() for name, part in extras.items() if part is not None}
        if self.profile != "default":
            found["profile"] = self.profile
        if self.groups:
            found["groups"] = {name: _short(part.to_dict()) for name, part in self.groups.items()}
        if self.labels is not None:
            found["labels"] = self.labels.to_dict()
        return plain(found, nan="nan")

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict` as JSON; "format" is its version."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def __repr__(self) -> str:
        level = round(100 * self.rate.confidence)
        lines = [f"Measurement of {count_of(self.n, 'row')}, {self.subject}", f"  {self.verdict}", ""]
        wide = max(14, *(2 + len(name) for name in self.figures))
        lines.append(f"  {'':<{wide}}{'norm':>5}{'value':>9}   {level} % interval")
        notes = list(dict.fromkeys(found.note for found in self.figures.values() if found.note))
        for name, found in self.figures.items():
            mark = f" {'*' * (1 + notes.index(found.note))}" if found.note else ""
            lines.append(f"  {name:<{wide}}{found.norm or '':>5}{found.shown:>9}   {found.brackets}{mark}")
        lines += [f"  {'*' * (1 + i)} {note}" for i, note in enumerate(notes)]
        lines += [f"  {self.wide}"] * bool(self.wide)
        lines += ["", f"  mean score {self.confidence:.4f}; {self.test}"]
        if self.labels is not None:
            lines += ["", f"  all entries above, by label below; {self.labels.missing:,} outcomes are not known"]
            shown = {name: {k: told[k] for k in _BY_LABEL} for name, told in self.labels.labels.items()}
            for name, told in shown.items():
                lines.append(f"  {name:<20}{'   '.join(f'{figure} {value}' for figure, value in told.items())}")
            words = wide_words(*shown.values())
            lines += [f"  {words}"] * bool(words)
        if self.group_findings is not None:
            lines += ["", f"  {self.group_findings.verdict}"]
            of = self.group_findings.counted if self.labels is None else "entries"
            for row in self.group_findings.rows:
                few = "  too few to judge" if row.small else ""
                gap = f"{row.gap:+.4f} [{row.low:+.4f}, {row.high:+.4f}]"
                lines.append(f"  {row.name:<20}{row.rows:>9,.0f} {of}   seen - said {gap}{few}")
        return "\n".join(visible(line, kept="") for line in lines)


def _short(measured: dict[str, Any]) -> dict[str, Any]:
    """Leave out the curves of classes: a group has its own curve, figures and verdict."""
    return {name: part for name, part in measured.items() if name not in ("class_curves", "format")}
