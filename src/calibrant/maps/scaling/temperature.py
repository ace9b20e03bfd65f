"""Temperature scaling: one parameter, the top label untouched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...arrays import row_subsample, tempered_softmax
from ...calibrator import Calibrator
from ...fit_report import FitReport
from ...parameters import Number, OneOf
from ...passes import Sample, reduce
from ...threads import get_threads
from ...traits import Traits

__all__ = ["TemperatureScaling"]

_LOSSES = {"nll": 0, "brier": 1}
_REACH = 1e5  # how far 1/T may lie from one over the scores' own scale
_PILOT_ROWS = 2000
_MOST_STEPS = 60
_NOTHING_LEFT = 1e-9  # a mean loss below this is zero for every purpose
_GRID_SCORES = 200_000  # up to this many scores the scan for the global optimum uses every row


class TemperatureScaling(Calibrator):
    """p = softmax(z / T), with T > 0 minimising the log-loss or the Brier score (Guo et al. 2017).

    The problem is one-dimensional in β = 1/T. The log-loss is convex there; the Brier score is not, and a scan over
    β finds the basin of its global optimum first. Safeguarded Newton steps with exact derivatives follow; each is
    one pass. Any scale and any shift of the logits is fine.

    Parameters
    ----------
    loss : {"nll", "brier"}
    inputs, classes
        See `Calibrator`.

    Attributes
    ----------
    temperature_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import TemperatureScaling
    >>> logits = np.array([[2.0, 0.0], [3.0, 0.0], [0.0, 1.0], [4.0, 0.0]])
    >>> round(TemperatureScaling().fit(logits, [0, 1, 1, 0]).temperature_, 3)
    3.476
    """

    _traits = Traits("scaling", "ranking", "top label", "1")
    _constraints: ClassVar[Mapping[str, Any]] = {"loss": OneOf("nll", "brier")}
    _state_constraints: ClassVar[Mapping[str, Any]] = {"temperature_": Number(0, open_low=True)}
    temperature_: float

    def __init__(self, loss: str = "nll", *, inputs: str = "logits", classes: Any = None) -> None:
        self.loss = loss
        self.inputs = inputs
        self.classes = classes

    def _fit(self, sample: Sample) -> FitReport:
        found = fit_temperature(sample, self.loss)
        self.temperature_ = 1.0 / found.beta
        return found.report(self.loss)

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        return tempered_softmax(logits, 1.0 / self.temperature_)

    def _map_logits(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        return logits / logits.dtype.type(self.temperature_)


# β, the sums by fold there, passes, converged or not
_Candidate = tuple[float, NDArray[np.float64], int, bool]


@dataclass(frozen=True)
class _Found:
    """An optimal β with the sums by fold at β and at 1: (folds, [loss, first, second derivative])."""

    beta: float
    at_one: NDArray[np.float64]
    at_beta: NDArray[np.float64]
    total: float
    passes: int
    converged: bool
    bounds: tuple[float, float]

    def report(self, loss: str) -> FitReport:
        before, after = (float(sums[:, 0].sum() / self.total) for sums in (self.at_one, self.at_beta))
        messages: list[str] = []
        at_bound: tuple[str, ...] = ()
        if self.beta >= self.bounds[1] or after < _NOTHING_LEFT:
            at_bound = ("temperature_",)
            messages.append(
                "the loss falls all the way to T = 0 (every label is the top class): the temperature stops at "
                f"{1 / self.beta:.4g}; get harder or more rows"
            )
        elif self.beta <= self.bounds[0] * (1 + 1e-9):
            at_bound = ("temperature_",)
            messages.append(
                "the scores say nothing about the labels (the best temperature is infinite): it stops at "
                f"{1 / self.beta:.4g}"
            )
        held, error = self._held_out(after) if not at_bound else (None, None)
        return FitReport(
            self.passes,
            self.converged,
            loss,
            before,
            after,
            held_out_before=before if held is not None else None,
            held_out_after=held,
            held_out_error=error,
            at_bound=at_bound,
            messages=tuple(messages),
        )

    def _held_out(self, after: float) -> tuple[float, float]:
        """Five-fold cross-validated loss by one Newton step from β for each fold left out: no further pass.

        The second figure is the standard error of its difference to the loss before, from the spread of the folds.
        """
        rest = self.at_beta.sum(axis=0) - self.at_beta
        if (rest[:, 2] <= 0).any():
            return after, 1.0 / self.total
        step = -rest[:, 1] / rest[:, 2]
        losses = self.at_beta[:, 0] + self.at_beta[:, 1] * step + 0.5 * self.at_beta[:, 2] * step**2
        gains = losses - self.at_one[:, 0]
        error = np.sqrt(len(gains) * gains.var(ddof=1))
        return float(losses.sum() / self.total), float(max(1.0, error) / self.total)


def temperature_sums(sample: Sample, beta: float, loss: str) -> NDArray[np.float64]:
    """One pass: by fold, the loss of softmax(β z) and its first two derivatives in β."""
    return reduce(
        lambda rows: _core.temperature_sums(rows.logits, rows.labels, rows.weights, beta, _LOSSES[loss], get_threads()),
        sample,
    )


def beta_bounds(sample: Sample) -> tuple[float, float]:
    """Range searched for β: the scores' own scale (mean spread of a row), five decades either way."""
    z = sample.logits[row_subsample(sample.n, _PILOT_ROWS)]
    scale = float(np.mean(np.std(z, axis=1, dtype=np.float64)))
    return (1.0 / (_REACH * scale), _REACH / scale) if scale > 0 else (1.0 / _REACH, _REACH)


def fit_temperature(sample: Sample, loss: str) -> _Found:
    """Find the global optimum of the one-dimensional problem."""
    bounds = beta_bounds(sample)
    at_one = temperature_sums(sample, 1.0, loss)
    pilot = sample.take(row_subsample(sample.n, _PILOT_ROWS)) if sample.n > 4 * _PILOT_ROWS else sample
    starts = [1.0] if loss == "nll" else _basins(pilot, loss, bounds)
    if pilot is not sample:
        starts = _worth_polishing([_newton(pilot, loss, start, bounds, {}) for start in starts])
    found = [_newton(sample, loss, start, bounds, {1.0: at_one}) for start in starts]
    beta, sums, steps, converged = min(found, key=_loss_of)
    return _Found(beta, at_one, sums, sample.total_weight, steps + 1, converged, bounds)


def given(sample: Sample, beta: float) -> _Found:
    """Return what `fit_temperature` does for the log-loss, with a β that is known."""
    at_one, at_beta = (temperature_sums(sample, b, "nll") for b in (1.0, beta))
    return _Found(beta, at_one, at_beta, sample.total_weight, 2, True, (0.0, np.inf))


def _loss_of(candidate: _Candidate) -> float:
    return float(candidate[1][:, 0].sum())


def _worth_polishing(candidates: list[_Candidate]) -> list[float]:
    """Optima on the pilot rows that could be the best on all rows: within two per cent of the best there."""
    best = min(_loss_of(c) for c in candidates)
    return [c[0] for c in candidates if _loss_of(c) <= 1.02 * best]


def _basins(sample: Sample, loss: str, bounds: tuple[float, float]) -> list[float]:
    """Grid points that are local minima of the loss, the best three."""
    if sample.logits.size > _GRID_SCORES:
        sample = sample.take(row_subsample(sample.n, max(500, _GRID_SCORES // sample.logits.shape[1])))
    grid = np.geomspace(*bounds, 61)
    values = np.array([temperature_sums(sample, b, loss)[:, 0].sum() for b in grid])
    padded = np.concatenate([[np.inf], values, [np.inf]])
    minima = np.flatnonzero((values <= padded[:-2]) & (values <= padded[2:]))
    return [float(b) for b in grid[minima[np.argsort(values[minima], kind="stable")][:3]]]


def _newton(
    sample: Sample, loss: str, beta: float, bounds: tuple[float, float], known: Mapping[float, NDArray[np.float64]]
) -> _Candidate:
    """Safeguarded Newton on log β: a bracket of the slope's sign change, bisection where a step leaves it.

    A step across a bound that was not tried yet tries the bound itself, so an optimum there is found at once. On
    separable rows the loss falls towards zero for ever: the search stops when nothing is left to gain. ``known`` has
    the sums of passes made already.
    """
    edges = (float(np.log(bounds[0])), float(np.log(bounds[1])))
    low, high = edges
    x = float(np.clip(np.log(beta), low, high))
    tolerance = 1e-6 if sample.logits.dtype == np.float32 else 1e-10
    best: _Candidate | None = None
    passes = 0
    for _ in range(_MOST_STEPS):
        b = float(np.exp(x))
        passes += b not in known
        sums = known[b] if b in known else temperature_sums(sample, b, loss)
        value, first, second = sums.sum(axis=0)
        if best is None or value <= _loss_of(best):
            best = (b, sums, passes, True)
        slope, curvature = first * b, first * b + second * b * b  # derivatives in log β
        low, high = (low, x) if slope > 0 else (x, high)
        done = slope == 0 or value < _NOTHING_LEFT * sample.total_weight or high - low < tolerance
        step = -slope / curvature if curvature > 0 else -np.copysign(np.inf, slope)
        if done or (abs(step) < tolerance and low < x + step < high):
            return best[0], best[1], passes, True
        x = _next(x, float(step), low, high, edges)
    assert best is not None
    return best[0], best[1], passes, False


def _next(x: float, step: float, low: float, high: float, edges: tuple[float, float]) -> float:
    target = x + step
    if low < target < high:
        return x + float(np.clip(step, -2.0, 2.0))
    if target <= low == edges[0]:
        return low
    if target >= high == edges[1]:
        return high
    return 0.5 * (low + high)
