"""One call that measures: metrics with intervals, a test, reliability curves and a verdict in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..cells.edges import check_edges
from ..cells.moments import moments_of
from ..cells.pairs import Pairs
from ..cells.summed import CELLS, check_cells
from ..errors import FileProblem, InvalidInput, reading_state
from ..parameters import generator, is_one_of
from ..types import Integers
from ..validation import as_array, as_groups
from .decisions.net_benefit import curve_of_decisions
from .estimators.binned import binned
from .estimators.curves import ReliabilityCurve, curve_of, smooth_curve
from .inference.group_test import group_findings, natural
from .inference.intervals import Interval, check_confidence, check_resamples
from .inference.means import share_interval
from .inference.resampling import CUMULATIVE, Sampling, resampled_choice
from .inference.testing import sweep_test
from .inference.verdict import verdict_of
from .labelled import label_findings
from .measurement import Measurement
from .metric import Error
from .scores.proper import brier_rows, nll_rows
from .table import PROFILES, TABLE
from .views.blocks import CellForecasts, summarised
from .views.forecasts import Forecasts, in_known_order, read
from .views.labels import MultiLabel, read_labels_of

# Every class has a curve up to this many classes; beyond, the worst of them do.
MOST_CLASSES = 20
MOST_GROUPS = 1000  # groups of rows that come in blocks: each keeps cells of its own
MOST_DRAWS = 200_000_000  # rows that all resamples together stand for, in memory or summed in cells
FORMAT = 2
_BY_CELL = ("scores", "outcomes", "weights", "draws")


@dataclass(frozen=True)
class Settings:
    """How to measure."""

    confidence: float = 0.95
    resamples: int = 1000
    bins: int = 15
    random_state: int = 0
    profile: str = "default"
    cells: int = CELLS  # of rows that come in blocks

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        check_resamples(self.resamples, 19)
        generator(self.random_state)
        check_edges("equal_width", self.bins)
        check_cells(self.cells)
        if not is_one_of(self.profile, PROFILES):
            raise InvalidInput("no such profile", seen=repr(self.profile), allowed=", ".join(PROFILES))


def measure(
    y_true: Any,
    y_prob: Any = None,
    *,
    inputs: str | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    clusters: Any = None,
    classes: Any = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    bins: int = 15,
    random_state: int = 0,
    profile: str = "default",
) -> Measurement:
    """Measure how well calibrated probabilities are, and how sure that is.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Class labels; 0/1 outcomes where ``y_prob`` is one-dimensional. Or a `calibrant.scan` alone.
    y_prob : array-like of shape (n, K) or (n,)
        Probabilities of the classes, or of one event.
    inputs : {"logits", "probabilities"}, optional
        What the scores of a scan are; those of a scan that is mapped are probabilities, and so are arrays.
    confidence : float
        Of all intervals.
    resamples : int
        Of the bootstrap and of the test. Class-wise and smooth errors use a tenth as many, or 100; beyond 200,000 rows
        there are fewer, in inverse proportion, and 200 at least.
    bins : int
        Of the binned errors and curves.
    groups : array-like of shape (n,), optional
        A hospital, a country, …: every figure is given by group too, with the worst and a test that they differ.
    clusters : array-like of shape (n,), optional
        Which rows belong together and need not be independent (of one patient, prompt or image): all intervals and
        tests know of it.
    profile : {"default", "risk", "forecast", "multilabel"}
        Whose figures and words: "risk" those that a risk model is reported with, with a smooth curve and a decision
        curve; "forecast" those of probability forecasts; "multilabel" for (n, L) outcomes, NaN where not known, and
        probabilities that need not sum to one.

    Examples
    --------
    >>> import calibrant
    >>> from calibrant.simulation import scenarios
    >>> found = calibrant.measure(*scenarios["resnet110_c10"].sample(2000, random_state=0))
    >>> found.verdict.startswith("Miscalibrated")
    True
    """
    settings = Settings(confidence, resamples, bins, random_state, profile)
    if y_prob is None and hasattr(y_true, "measured"):  # a scan, which brings its labels
        own = {name: value for name, value in asdict(settings).items() if name != "cells"}
        return y_true.measured(inputs, classes, own)
    if not is_one_of(inputs, (None, "probabilities")):
        raise InvalidInput(
            "arrays to measure are probabilities",
            seen=f"inputs={inputs!r}",
            allowed="None or 'probabilities'",
            hint="measure what predict_proba of a map answers; calibrant.Identity() turns logits into probabilities",
        )
    if profile == "multilabel":
        return _measured_labels(read_labels_of(y_true, y_prob, sample_weight, clusters, classes), settings, groups)
    shape = () if y_true is None else as_array(y_true, "y_true")[0].shape
    if len(shape) == 2 and shape[1] > 1:
        raise InvalidInput(
            "y_true has a column for each of several events",
            seen=f"shape {shape}",
            allowed="one label a row",
            hint='pass profile="multilabel" for events that may happen together, or the class of each row',
        )
    forecasts = read(y_true, y_prob, sample_weight, classes=classes).clustered(clusters)
    return _by_group(measured(forecasts, settings), forecasts, groups, settings)


def _by_group(found: Measurement, forecasts: Forecasts, groups: Any, settings: Settings) -> Measurement:
    """Add what was found by group."""
    if groups is None:
        return found
    forecasts, places, names = _in_groups(forecasts, groups)
    order = sorted(range(len(names)), key=lambda place: natural(names[place]))
    places, shown = np.argsort(order)[places], [names[place] for place in order]
    rng = generator(settings.random_state)
    findings = group_findings(forecasts.top, places, shown, settings.confidence, settings.resamples, rng)
    own = _of_each(settings, len(shown))
    parts = {name: measured(forecasts.take(places == place), own) for place, name in enumerate(shown)}
    return replace(found, groups=parts, group_findings=findings)


def _in_groups(forecasts: Forecasts, groups: Any) -> tuple[Forecasts, Integers, list[str]]:
    """Return the rows that have a weight, the place of each one's group, and the groups' names."""
    places, names = as_groups(groups, forecasts.n)
    if forecasts.weights is not None:
        there = forecasts.weights > 0
        forecasts, places = forecasts.take(there), places[there]
    seen, places = np.unique(places, return_inverse=True)
    return forecasts, places, [str(name) for name in names[seen]]


def _of_each(settings: Settings, groups: int) -> Settings:
    """Return how each of several groups is measured: intervals that hold for all of them together."""
    level = 1 - (1 - settings.confidence) / groups
    return replace(settings, confidence=level, resamples=max(200, int(np.ceil(2 / (1 - level)))))


def _measured_labels(given: MultiLabel, settings: Settings, groups: Any) -> Measurement:
    """Measure all known entries as one event, and each label by itself."""
    pooled = given.pooled()
    found = measured(pooled, settings)
    sampling = Sampling(settings.resamples, generator(settings.random_state), 100)
    errors = [
        binned(given.label(k), bins=settings.bins) if given.known[:, k].any() else 0.0 for k in range(len(given.names))
    ]
    chosen = sorted(np.argsort(errors)[::-1][:MOST_CLASSES].tolist())
    curves = [
        curve_of(given.label(k), given.names[k], settings.bins, confidence=settings.confidence)
        for k in chosen
        if given.known[:, k].any()
    ]
    if groups is not None:
        places, names = as_groups(groups, given.n)
        rows = np.broadcast_to(places[:, None], given.outcomes.shape)[given.known]
        found = _by_group(found, pooled, names[rows], settings)
    labels = label_findings(given, pooled, settings.confidence, sampling)
    return replace(found, n=given.n, n_classes=len(given.names), class_curves=tuple(curves), labels=labels)


class Measuring:
    """`measure` for rows that come in blocks: update, merge (or ``+``), finalise.

    What it keeps are sums by cell of the top label (or event), by bin of each class, and moments of the losses: 3 to 8
    KB up to ten classes (12 with weights that are no counts), whatever the number of rows. Binned errors and losses are
    exact, and all figures are where there are no more than 256 distinct scores; else scores are known to the width of a
    cell of a grid. Intervals come from drawing the rows of the cells anew.

    Parameters are those of `measure`, and ``cells``, how many of them the grid has: more are finer, and larger.

    Examples
    --------
    >>> one, two = Measuring(resamples=99), Measuring(resamples=99)
    >>> total = one.update([1, 0, 1], [0.9, 0.2, 0.7]) + two.update([0, 0, 1], [0.3, 0.2, 0.6])
    >>> total.finalise().n
    6
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = Settings(**settings)
        self.summary: CellForecasts | None = None
        self.groups: dict[str, Measuring] = {}

    def update(
        self, y_true: Any, y_prob: Any, *, sample_weight: Any = None, classes: Any = None, groups: Any = None
    ) -> Measuring:
        """Add rows, and return the state itself; with ``groups`` in every update, figures are told by group too."""
        y_prob, classes = in_known_order(y_prob, classes, None if self.summary is None else self.summary.classes)
        forecasts = read(y_true, y_prob, sample_weight, classes=classes)
        if groups is not None:
            there, places, names = _in_groups(forecasts, groups)
            for place, name in enumerate(names):
                self._group(name)._add_rows(there.take(places == place))
        return self._add_rows(forecasts)

    def _group(self, name: str) -> Measuring:
        if name not in self.groups and len(self.groups) >= MOST_GROUPS:
            raise InvalidInput("too many groups to tell figures of each", seen=f"more than {MOST_GROUPS}")
        return self.groups.setdefault(name, Measuring(**asdict(self.settings)))

    def _add_rows(self, forecasts: Forecasts) -> Measuring:
        rows = {"brier": brier_rows(forecasts), "nll": nll_rows(forecasts)}
        losses = {name: moments_of(values, forecasts.weights) for name, values in rows.items()}
        return self._add(summarised(forecasts, losses, self.settings.bins, self.settings.cells))

    def merge(self, other: Measuring) -> Measuring:
        """Add the rows of another state, and return the state itself."""
        if self.settings != other.settings:
            raise InvalidInput("states with different settings cannot be merged")
        for name, part in other.groups.items():
            self._group(name).merge(part)
        return self if other.summary is None else self._add(other.summary)

    def __add__(self, other: Measuring) -> Measuring:
        return Measuring(**asdict(self.settings)).merge(self).merge(other)

    def _add(self, summary: CellForecasts) -> Measuring:
        self.summary = summary if self.summary is None else self.summary + summary
        return self

    def finalise(self) -> Measurement:
        """Return the measurement of all rows so far."""
        if self.summary is None:
            raise InvalidInput("a state without rows has no figures", hint="call update first")
        found = measured(self.summary, self.settings)
        return found if not self.groups else self._by_group(found)

    def _by_group(self, found: Measurement) -> Measurement:
        """Add what was found by group, from the cells of each."""
        parts = {name: part.summary for name, part in self.groups.items() if part.summary is not None}
        parts = {name: parts[name] for name in sorted(parts, key=natural)}
        each = [part.top for part in parts.values()]
        places = np.repeat(np.arange(len(each)), [pairs.n for pairs in each])
        rng = generator(self.settings.random_state)
        pairs = Pairs(*(np.concatenate([getattr(part, name) for part in each]) for name in _BY_CELL))
        findings = group_findings(pairs, places, list(parts), self.settings.confidence, self.settings.resamples, rng)
        own = _of_each(self.settings, len(parts))
        return replace(
            found, groups={name: measured(part, own) for name, part in parts.items()}, group_findings=findings
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, strings and numbers, as JSON can hold them."""
        known = None if self.summary is None else self.summary.to_dict()
        told = {"format": FORMAT, "settings": asdict(self.settings), "summary": known}
        groups = {name: part.to_dict() for name, part in self.groups.items()}
        return {**told, "groups": groups} if groups else told

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Measuring:
        """Return the state that `to_dict` told; what it cannot have told is refused."""
        with reading_state("state of a measurement"):
            if given.get("format") != FORMAT:
                seen = repr(given)[:80]
                raise InvalidInput("this is no state of a measurement", seen=seen, allowed=f"format {FORMAT}")
            made = cls(**given["settings"])
            if given["summary"] is not None:
                made.summary = CellForecasts.from_dict(given["summary"], made.settings.bins, made.settings.cells)
                if not made.summary.n or not made.summary.cells[0].table.size:
                    raise FileProblem("this is no state of a measurement", seen="sums of no rows")
            made.groups = {name: cls.from_dict(part) for name, part in given.get("groups", {}).items()}
            return made


def measured(forecasts: Any, settings: Settings) -> Measurement:
    """Measure validated forecasts, or what is left of those that came in blocks. Nothing is computed twice."""
    pairs, confidence, bins = forecasts.top, settings.confidence, settings.bins
    n = forecasts.n if isinstance(forecasts, CellForecasts) else pairs.counted().n
    resamples = min(settings.resamples, max(200, MOST_DRAWS // n))
    slow = max(min(resamples, 100), resamples // 10)
    sampling = Sampling(resamples, generator(settings.random_state), slow)
    words = "the event's probabilities are true" if forecasts.is_event else "the top label's probabilities are true"
    test = sweep_test(pairs, words, 2, resamples, sampling.rng)
    sampling.pvalues[id(pairs)] = test.pvalue
    found = _metrics(forecasts, settings, sampling)
    rate = share_interval(pairs, confidence)
    mean = float(np.average(pairs.scores, weights=pairs.weights))
    error, slope = found["ece_crossfit"], found.get("calibration_slope")
    of = "known entries" if settings.profile == "multilabel" else "rows"
    said = verdict_of(forecasts.is_event, pairs, rate.estimate, mean, error, test, slope, of)
    return Measurement(
        n=n,
        n_classes=len(forecasts.classes),
        rate=rate,
        confidence=mean,
        metrics=found,
        test=test,
        curve=curve_of(pairs, "event" if forecasts.is_event else "top_label", bins, confidence=confidence),
        class_curves=_class_curves(forecasts, bins, confidence),
        shape=said.shape,
        verdict=said.words,
        profile=settings.profile,
        smooth=smooth_curve(pairs, confidence) if settings.profile == "risk" else None,
        decisions=curve_of_decisions(pairs, confidence=confidence) if settings.profile == "risk" else None,
    )


def _metrics(forecasts: Any, settings: Settings, sampling: Sampling) -> dict[str, Interval]:
    """Return the figures of the profile; those of one view share its resamples and its test."""
    names = [n for n in PROFILES[settings.profile] if not (forecasts.is_event and TABLE[n].view == "class_wise")]
    options = {name: {"bins": settings.bins} if TABLE[name].has_bins else {} for name in names}
    errors = {name: row.given(options[name]) for name in names if isinstance(row := TABLE[name], Error)}
    fast = [resampled_choice(choice) for choice in errors.values() if choice["view"] == "top_label"]
    sampling.prepare(
        forecasts.top, [choice for choice in fast if choice["norm"] != "max" or choice["estimator"] in CUMULATIVE]
    )
    return {name: TABLE[name].interval(forecasts, settings.confidence, sampling, **options[name]) for name in names}


def _class_curves(forecasts: Any, bins: int, confidence: float) -> tuple[ReliabilityCurve, ...]:
    if forecasts.is_event:
        return ()
    columns = range(len(forecasts.classes))
    if len(columns) > MOST_CLASSES:
        errors = [binned(forecasts.one_class(k), bins=bins) for k in columns]
        columns = sorted(np.argsort(errors)[::-1][:MOST_CLASSES].tolist())
    return tuple(
        curve_of(forecasts.one_class(k), str(forecasts.classes[k]), bins, confidence=confidence) for k in columns
    )
