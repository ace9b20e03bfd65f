"""Temperature scaling: one parameter, the top label untouched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...arrays import softmax, tempered_softmax
from ...calibrator import Calibrator
from ...fits.judge import estimate
from ...fits.report import FitReport
from ...fits.solvers.newton import Sums, newton
from ...parameters import Number, OneOf
from ...passes import Block, Data
from ...threads import get_threads
from ...traits import Traits

__all__ = [
    "BestTemperature",
    "TemperatureScaling",
    "best_temperature",
    "beta_bounds",
    "given_temperature",
    "temperature_sums",
]

Array = NDArray[np.float64]
_LOSSES = {"nll": 0, "brier": 1}
_REACH = 1e5  # how far 1/T may lie from one over the scores' own scale
_PILOT_ROWS = 2000  # they tell T to about two per cent, from where Newton needs two or three passes
_NOTHING_LEFT = 1e-9  # a mean loss below this is zero for every purpose
_ARRIVED = 1e-10  # of the mean loss: what a last step would still gain; T is then right to about 1e-9
_GRID = 61  # points of the scan for basins: six to a decade
_GRID_SCORES = 200_000  # the scan looks at rows of about so many scores


class TemperatureScaling(Calibrator):
    """p = softmax(z / T), with T > 0 minimising the log-loss or the Brier score (Guo et al. 2017).

    The problem is one-dimensional in β = 1/T. The log-loss is convex there; the Brier score is not, and a scan over
    β finds the basin of its global optimum first. Safeguarded Newton steps with exact derivatives follow; each is
    one pass. Any scale and any shift of the logits is fine.

    Parameters
    ----------
    loss : {"nll", "brier"}
    inputs, classes, saturated
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

    _identifier = "temperature-scaling"
    _traits = Traits("scaling", "ranking", "top label", "1")
    _constraints: ClassVar[Mapping[str, Any]] = {"loss": OneOf("nll", "brier")}
    _state_constraints: ClassVar[Mapping[str, Any]] = {"temperature_": Number(0, open_low=True)}
    _learnt = ("temperature_",)
    temperature_: float

    def __init__(
        self, loss: str = "nll", *, inputs: str = "logits", classes: Any = None, saturated: str = "small"
    ) -> None:
        self.loss = loss
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    def _fit(self, data: Data) -> FitReport:
        found = best_temperature(data, self.loss)
        self.temperature_ = 1.0 / found.beta
        report = found.report(self.loss)
        if self.loss != "nll" or report.at_bound:
            return report
        return estimate(report, data, softmax, self._map, 1.0)

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        return tempered_softmax(logits, 1.0 / self.temperature_)

    def _map_logits(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        return logits / logits.dtype.type(self.temperature_)


@dataclass(frozen=True)
class BestTemperature:
    """An optimal β = 1/T, the mean losses at 1 and at β, the passes, and the range that was searched."""

    beta: float
    before: float
    after: float
    passes: int
    converged: bool
    bounds: tuple[float, float]

    def report(self, loss: str) -> FitReport:
        """Return what is to be said of the fit; nothing on rows that were held out."""
        messages: tuple[str, ...] = ()
        if self.beta >= self.bounds[1] or self.after < _NOTHING_LEFT:
            messages = (
                "the loss falls all the way to T = 0 (every label is the top class): the temperature stops at "
                f"{1 / self.beta:.4g}; get harder or more rows",
            )
        elif self.beta <= self.bounds[0] * (1 + 1e-9):
            messages = (
                "the scores say nothing about the labels (the best temperature is infinite): it stops at "
                f"{1 / self.beta:.4g}",
            )
        at_bound = ("temperature_",) if messages else ()
        return FitReport(
            self.passes, self.converged, loss, self.before, self.after, at_bound=at_bound, messages=messages
        )


def temperature_sums(block: Block, betas: Array, loss: str = "nll", places: NDArray[np.int64] | None = None) -> Array:
    """One pass: by group of rows, the loss of softmax(β z) and its first two derivatives in β, (groups, 3).

    ``betas`` has the β of each group, ``places`` the group of each row of the block; without them all are in the first.
    """
    return _core.temperature_sums(
        block.logits, block.labels, block.weights, places, betas, _LOSSES[loss], get_threads()
    )


def best_temperature(data: Data, loss: str = "nll") -> BestTemperature:
    """Find the global optimum of the one-dimensional problem.

    From the optimum on a pilot in memory, where there are many rows; the Brier score from every basin that a scan finds
    there, the best of which is taken to the end on all rows.
    """
    pilot = data.pilot(_PILOT_ROWS) if data.n > 4 * _PILOT_ROWS else data
    bounds = beta_bounds(pilot)
    at_one = _at(data, loss, 1.0)
    starts = [1.0] if loss == "nll" else _basins(pilot, loss, bounds)
    if pilot is not data:
        starts = _worth_polishing([_descend(pilot, loss, start, bounds) for start in starts])
    found = [_descend(data, loss, start, bounds, at_one) for start in starts]
    if all(descent.value > at_one.value[0] for descent in found):  # β = 1 lies outside, and is better than any inside
        bounds = (min(bounds[0], 1.0), max(bounds[1], 1.0))
        found.append(_descend(data, loss, 1.0, bounds, at_one))
    best = min(found, key=lambda descent: descent.value)
    total = data.total_weight
    before = float(at_one.value[0]) / total
    passes = 1 + sum(descent.passes for descent in found)
    return BestTemperature(best.beta, before, min(best.value / total, before), passes, best.converged, bounds)


def given_temperature(data: Data, temperature: float) -> BestTemperature:
    """Return what `best_temperature` does for the log-loss, with a temperature that is known."""
    before, after = (float(_at(data, "nll", beta).value[0]) / data.total_weight for beta in (1.0, 1.0 / temperature))
    return BestTemperature(1.0 / temperature, before, after, 2, True, (0.0, np.inf))


def beta_bounds(data: Data) -> tuple[float, float]:
    """Return the range searched for β: one over the scores' scale (mean spread of a row), five decades either way."""
    spread, rows = data.pilot(_PILOT_ROWS).reduce(_spreads)
    scale = spread / rows
    return (1.0 / (_REACH * scale), _REACH / scale) if scale > 0 else (1.0 / _REACH, _REACH)


def _spreads(block: Block) -> tuple[float, int]:
    return float(np.std(block.logits, axis=1, dtype=np.float64).sum()), block.n


@dataclass(frozen=True)
class _Descent:
    """Where Newton ended: β, the summed loss there, passes, and whether it arrived."""

    beta: float
    value: float
    passes: int
    converged: bool


def _at(data: Data, loss: str, beta: float) -> Sums:
    sums = data.reduce(partial(temperature_sums, betas=np.array([beta]), loss=loss))
    return Sums(sums[:, 0], sums[:, 1:2], sums[:, 2:3, None])


def _descend(data: Data, loss: str, beta: float, bounds: tuple[float, float], at_one: Sums | None = None) -> _Descent:
    """Newton on β from one start.

    Rows that the scores tell apart without an error have a loss that falls towards zero for ever, in steps that
    Newton knows to be worth ever less: the search ends when next to nothing is left to gain.
    """
    total = data.total_weight
    known = at_one if beta == 1.0 and bounds[0] <= 1.0 <= bounds[1] else None
    found = newton(
        lambda theta, _: _at(data, loss, float(theta[0, 0])),
        np.array([[beta]]),
        _ARRIVED * total,
        low=bounds[0],
        high=bounds[1],
        known=known,
    )
    return _Descent(float(found.theta[0, 0]), float(found.sums.value[0]), found.passes, bool(found.converged[0]))


def _worth_polishing(candidates: list[_Descent]) -> list[float]:
    """Optima on the pilot rows that could be the best on all rows: within two per cent of the best there."""
    best = min(c.value for c in candidates)
    return [c.beta for c in candidates if c.value <= 1.02 * best]


def _basins(data: Data, loss: str, bounds: tuple[float, float]) -> list[float]:
    """Grid points that are local minima of the loss, the best three."""
    few = data.pilot(max(500, _GRID_SCORES // data.columns))
    grid = np.geomspace(*bounds, _GRID)
    values = np.array([float(_at(few, loss, float(b)).value[0]) for b in grid])
    padded = np.concatenate([[np.inf], values, [np.inf]])
    minima = np.flatnonzero((values <= padded[:-2]) & (values <= padded[2:]))
    return [float(b) for b in grid[minima[np.argsort(values[minima], kind="stable")][:3]]]
