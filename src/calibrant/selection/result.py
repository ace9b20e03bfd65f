"""What a comparison found."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from .. import plots
from ..calibrator import Calibrator
from ..errors import MissingExtra, count_of
from ..plain import plain
from .evaluate import Answers


@dataclass(frozen=True)
class Estimate:
    """A figure with its standard error, low and high 1.96 of them away; of errors, which chance raises, no interval."""

    value: float
    error: float

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.value - 1.96 * self.error if math.isfinite(self.value) else self.value

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.value + 1.96 * self.error

    def __str__(self) -> str:
        return f"{self.value:.4f} ±{1.96 * self.error:.4f}" if math.isfinite(self.value) else "∞"

    def to_dict(self) -> dict[str, float]:
        """Return value, error and interval."""
        return {"value": self.value, "error": self.error, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Row:
    """One map of a comparison.

    Attributes
    ----------
    name : str
    metrics : dict of Estimate
        nll, brier, accuracy, ece, ece_sweep, cwece on rows the map was not fitted on; of one event nll, brier, ece and
        ece_sweep; and what ``also`` asked for.
    against_identity, against_best : dict of Estimate
        Paired differences of nll, brier and accuracy; negative losses are gains.
    parameters : float
        How many numbers the rows determine where the map knows that (``effective_parameters``), else how many it
        learnt; the mean over its fits.
    learnt : float
        How many numbers it learnt (``n_parameters_``), likewise.
    keeps : str
        What it can never change: "ranking", "top label" or "nothing".
    fit_seconds, predict_seconds : float
        Mean time of a fit; time to answer all judged rows once.
    eligible : bool
        Whether it may be chosen.
    messages : tuple of str
    error : str
        Why it failed, or "".
    """

    name: str
    metrics: Mapping[str, Estimate] = field(default_factory=dict)
    against_identity: Mapping[str, Estimate] = field(default_factory=dict)
    against_best: Mapping[str, Estimate] = field(default_factory=dict)
    parameters: float = 0.0
    keeps: str = "nothing"
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    eligible: bool = True
    messages: tuple[str, ...] = ()
    error: str = ""
    learnt: float = 0.0

    @property
    def size(self) -> tuple[float, float]:
        """What makes a map simple: few effective parameters, to a hundredth; among equals, few that it learnt."""
        return round(self.parameters, 2), self.learnt


@dataclass(frozen=True)
class Curve:
    """A learning curve: the held-out figures of one map against the rows it was fitted on."""

    name: str
    metric: str
    sizes: tuple[int, ...]
    estimates: tuple[Estimate, ...]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Maps side by side, best first; failed ones last.

    Attributes
    ----------
    rows : tuple of Row
    best_ : str
        The map to take: `reason` says why.
    lowest_ : str
        The map with the lowest loss.
    reason : str
        Why, and what more data would change.
    curves : tuple of Curve
    settings : dict
        What reproduces it; "zeros" are the judged rows that give a class a probability of exactly zero, which every
        map, "identity" too, reads as something small (none with ``saturated="exact"``).
    """

    rows: tuple[Row, ...]
    best_: str
    lowest_: str
    reason: str
    curves: tuple[Curve, ...]
    settings: Mapping[str, Any]
    _refit: Callable[[], Calibrator]
    _answers: Callable[[str], Answers]

    @cached_property
    def refit_(self) -> Calibrator:
        """The chosen map, fitted on all rows."""
        return self._refit()

    def answers(self, name: str) -> Answers:
        """Return what a map answered on the judged rows (in the first repeat); it is fitted again for this."""
        return self._answers(name)

    @property
    def zeros_words(self) -> str:
        """How zeros among the scores were judged, in words; empty where there were none."""
        zeros = self.settings.get("zeros", 0)
        if not zeros:
            return ""
        return (
            f"{count_of(zeros, 'row')} with a probability of exactly 0 for some class: here it counts as something "
            "small, before and after alike, and for measure as 0."
        )

    def differences(self, metric: str) -> tuple[str, list[tuple[Row, Estimate]]]:
        """Return whom maps are compared with, and each map's paired difference to it, where it is finite.

        That is "identity", the scores as they came; where their loss is infinite it is the map with the lowest.
        """
        finite = math.isfinite(self["identity"].metrics[metric].value)
        reference, key = ("identity", "against_identity") if finite else (self.lowest_, "against_best")
        pairs = [(row, getattr(row, key)[metric]) for row in self.rows if row.metrics]
        return reference, [(row, gap) for row, gap in pairs if math.isfinite(gap.value)]

    def plot(self, ax: Any = None) -> Any:
        """Draw the paired differences to the scores as they came, on matplotlib Axes."""
        return plots.comparison(self, metric=str(self.settings["metric"]), ax=ax)

    def __getitem__(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the fitted map, as plain values."""
        return {
            "best": self.best_,
            "lowest": self.lowest_,
            "reason": self.reason,
            "settings": dict(self.settings),
            "rows": [_row_dict(row) for row in self.rows],
            "curves": [_curve_dict(curve) for curve in self.curves],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON; what is not finite becomes null or "inf"."""
        return json.dumps(plain(self.to_dict()), allow_nan=False, ensure_ascii=False, indent=2)

    def to_dataframe(self) -> Any:
        """Return a pandas frame, one row a map."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtra("to_dataframe needs pandas", hint="pip install pandas") from error
        flat = []
        for row in self.rows:
            figures = {
                f"{m}{e}": v for m, est in row.metrics.items() for e, v in (("", est.value), ("_error", est.error))
            }
            rest = {"parameters": row.parameters, "keeps": row.keeps, "fit_seconds": row.fit_seconds}
            flat.append({"name": row.name, **figures, **rest, "eligible": row.eligible, "error": row.error})
        return pd.DataFrame(flat).set_index("name")

    def table(self) -> str:
        """Return the figures as text, with the chosen map marked."""
        names = list(next((row.metrics for row in self.rows if row.metrics), {}))
        lines = [f"{'':2}{'map':<18}" + "".join(f"{n:>11}" for n in names) + f"{'fit s':>9}"]
        for row in self.rows:
            mark = "* " if row.name == self.best_ else "  "
            figures = "".join(f"{row.metrics[n].value:>11.4f}" for n in names) if row.metrics else f"  {row.error}"
            lines.append(f"{mark}{row.name:<18}{figures}" + (f"{row.fit_seconds:>9.3f}" if row.metrics else ""))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"{self.table()}\n{self.reason}"


def _row_dict(row: Row) -> dict[str, Any]:
    shown = asdict(row)
    for key in ("metrics", "against_identity", "against_best"):
        shown[key] = {name: estimate.to_dict() for name, estimate in getattr(row, key).items()}
    return shown


def _curve_dict(curve: Curve) -> dict[str, Any]:
    points = [{"rows": s, **e.to_dict()} for s, e in zip(curve.sizes, curve.estimates, strict=True)]
    return {"name": curve.name, "metric": curve.metric, "points": points}
