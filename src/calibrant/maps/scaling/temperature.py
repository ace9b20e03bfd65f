"""Temperature scaling: one parameter, the top label untouched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from ... import _core
from ...arrays import inner, softmax, tempered_softmax
from ...calibrator import Calibrator
from ...declared import attribute, declared, parameter
from ...fits.judge import estimate
from ...fits.report import FitReport
from ...fits.solvers.line import LineFound, LineSums, newton_line
from ...formulas import Term
from ...formulas import softmax as softmax_formula
from ...invariants import TEMPERATURE
from ...parameters import OneOf
from ...passes import Block, Data, together
from ...threads import get_threads
from ...traits import Traits
from ...types import Array, Floats, Integers

_LOSSES = {"nll": 0, "brier": 1}
_SENSIBLE = 30.0  # times one over the scores' scale: beyond, Newton would crawl towards where they make sense
_ALIKE = 0.1  # of the β that suits the scores' scale: below it every class is about as probable
_REACH = 1e5  # how far 1/T may lie from one over the scores' own scale
_EQUAL = 1e-100  # scores that differ by less are equal: one over their scale, and its square, would be no numbers
_SCALED_BY = 1000  # rows of the pilot that the judge draws too
_SCALE_ROWS = 256  # they tell the scores' scale as well as a range of ten decades around it needs
_MANY_ROWS = 20_000  # with fewer, the passes that a pilot saves are worth no more than drawing it
_PILOT_ROWS = 1000  # they tell T to about three per cent, from where Newton needs two or three passes
_SURVEYED = 1 << 15  # the same where a survey has them, and a pass costs reading all rows
_NOTHING_LEFT = 1e-9  # a mean loss below this is zero for every purpose
_ARRIVED = 1e-9  # of the mean loss: what a last step would still gain; after it T is right to about 1e-8
_FEW = 20.0  # nats in all: rows whose labels are so little surprise may hold too few errors to tell T
_EXPECTED = 0.5  # errors: what the rate of an event that never happened is thought to be (Jeffreys' prior)
_STEPS = 50  # of β among which the one is found where so many are expected
_GRID = 61  # points of the scan for basins: six to a decade
_GRID_SCORES = 200_000  # the scan looks at rows of about so many scores


@declared
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
    loss: str = parameter(OneOf("nll", "brier"), default="nll")
    temperature_: float = attribute(TEMPERATURE, counted=True)

    def _fit(self, data: Data) -> FitReport:
        found = best_temperature(data, self.loss)
        self.temperature_ = 1.0 / found.beta
        report = found.report(self.loss)
        if self.loss != "nll" or report.at_bound:
            return report
        return estimate(report, data, softmax, self._map, 1.0)

    def _map(self, logits: Floats) -> Floats:
        return tempered_softmax(logits, 1.0 / self.temperature_)

    def _map_logits(self, logits: Floats) -> Floats:
        return logits / logits.dtype.type(self.temperature_)

    def _formula(self, z: Term) -> Term:
        return softmax_formula(z, 1.0 / self.temperature_)

    def _logits_formula(self, z: Term) -> Term:
        return z / self.temperature_


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
                "the loss falls to T = 0 or near it (hardly a label is not the top class): the temperature stops at "
                f"{1 / self.beta:.4g}, where half an error is expected; get harder or more rows",
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


def temperature_sums(block: Block, betas: Array, loss: str = "nll", places: Integers | None = None) -> Array:
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
    pilot = data
    if data.n > _MANY_ROWS or not data.in_memory:
        pilot = data.pilot(_PILOT_ROWS) if data.in_memory else data.surveyed(_SURVEYED)
    bounds = beta_bounds(pilot)
    starts = [_sensible_start(bounds)] if loss == "nll" else _basins(pilot, loss, bounds)
    if pilot is not data:
        starts = _worth_polishing([_descend(pilot, loss, start, bounds) for start in starts])
        descents = [partial(_descend, loss=loss, beta=start, bounds=bounds) for start in starts]
        at_one, *found = together(data, [partial(_at, loss=loss, beta=1.0), *descents])
    else:
        at_one = _at(data, loss, 1.0)
        found = [_descend(data, loss, start, bounds, at_one) for start in starts]
    if all(descent.value > at_one.value for descent in found):  # β = 1 lies outside, and is better than any inside
        bounds = (min(bounds[0], 1.0), max(bounds[1], 1.0))
        found.append(_descend(data, loss, 1.0, bounds, at_one))
    best = min(found, key=lambda descent: descent.value)
    passes = 1 + sum(descent.passes for descent in found)
    if best.x > 0 and best.value < _FEW:
        surest = _surest(data, math.exp(best.x))
        passes += 1
        if surest < math.exp(best.x):
            best = LineFound(math.log(surest), _at(data, loss, surest).value, 1, True)
            bounds = (min(bounds[0], surest), surest)
    total = data.total_weight
    before = at_one.value / total
    return BestTemperature(math.exp(best.x), before, min(best.value / total, before), passes, best.converged, bounds)


def _surest(data: Data, beta: float) -> float:
    """Return the largest β from 1 to a given one at which half an error is expected of all rows; 1 if none is.

    Where scores tell the rows apart without an error, or with one by a hair, the loss falls until T is next to zero,
    and a fit that is sure of everything pays for the first error on other rows. n rows without an error say that its
    rate is about ½/n, not that it is zero.
    """
    grid = np.geomspace(1.0, beta, _STEPS)
    expected = data.reduce(partial(_expected_errors, betas=grid))  # which falls with β
    logs = np.log(np.maximum(expected[::-1], 1e-300))
    return float(np.exp(np.interp(np.log(_EXPECTED), logs, np.log(grid[::-1]))))


def _expected_errors(block: Block, betas: Array) -> Array:
    """One pass: how many top labels softmax(β z) expects to be wrong, for each β."""
    below = block.logits - block.logits.max(axis=1, keepdims=True)
    below = np.where(np.isfinite(below), below, -np.inf).astype(np.float64)
    rows = max(1, _GRID_SCORES // (len(betas) * below.shape[1]))
    total = np.zeros(len(betas))
    for start in range(0, len(below), rows):
        with np.errstate(invalid="ignore"):
            mass = np.exp(below[start : start + rows, None, :] * betas[:, None]).sum(axis=2)
        total += block.weight_array[start : start + rows] @ (1 - 1 / mass)
    return total


def _sensible_start(bounds: tuple[float, float]) -> float:
    """Return β = 1, or the nearest β at which scores of this scale make sense: neither all alike nor all certain."""
    middle = math.sqrt(bounds[0] * bounds[1])
    return min(max(1.0, middle / _SENSIBLE), middle * _SENSIBLE)


def given_temperature(data: Data, temperature: float) -> BestTemperature:
    """Return what `best_temperature` does for the log-loss, with a temperature that is known."""
    before, after = (_at(data, "nll", beta).value / data.total_weight for beta in (1.0, 1.0 / temperature))
    return BestTemperature(1.0 / temperature, before, after, 2, True, (0.0, np.inf))


def beta_bounds(data: Data) -> tuple[float, float]:
    """Return the range searched for β: one over the scores' scale (mean spread of a row), five decades either way."""
    pilot = data.pilot(_SCALED_BY)
    few = None if pilot is data else _SCALE_ROWS  # a pilot's rows are in the order of their keys, which is any
    spread, rows = pilot.reduce(partial(_spreads, most=few))
    scale = spread / rows
    return (1.0 / (_REACH * scale), _REACH / scale) if scale > _EQUAL else (1.0 / _REACH, _REACH)


def _spreads(block: Block, most: int | None) -> tuple[float, float]:
    """One pass: the spreads of the rows, by weight, and their weights; scores count as much in a row given twice."""
    centred = block.logits[:most].astype(np.float64)
    centred -= np.einsum("ij->i", centred)[:, None] / centred.shape[1]  # for rows of few scores twice as fast as np.std
    deviations = np.sqrt(np.einsum("ij,ij->i", centred, centred) / centred.shape[1])
    if block.weights is None:
        return float(deviations.sum()), float(len(centred))
    weights = block.weights[:most]
    return inner(weights, deviations), float(weights.sum())


def _at(data: Data, loss: str, beta: float) -> LineSums:
    sums = data.reduce(partial(temperature_sums, betas=np.array([beta]), loss=loss))
    return LineSums(*sums[0].tolist())


def _descend(
    data: Data, loss: str, beta: float, bounds: tuple[float, float], at_one: LineSums | None = None
) -> LineFound:
    """Newton on log β from one start; there it overshoots less than on β, and needs half the passes.

    Rows that the scores tell apart without an error have a loss that falls towards zero for ever, in steps that
    Newton knows to be worth ever less: the search ends when next to nothing is left to gain.
    """

    def on_log(x: float) -> LineSums:
        return _in_log(_at(data, loss, math.exp(x)), math.exp(x))

    if loss == "nll" and beta < _ALIKE * math.sqrt(bounds[0] * bounds[1]):
        return _descend_flat(data, beta, bounds)
    low, high = (math.log(bound) for bound in bounds)
    known = at_one if beta == 1.0 and low <= 0.0 <= high else None
    known = None if known is None else _in_log(known, 1.0)
    return newton_line(on_log, math.log(beta), _ARRIVED * data.total_weight, low, high, known)


def _descend_flat(data: Data, beta: float, bounds: tuple[float, float]) -> LineFound:
    """Newton on β itself, in which the log-loss is all but a parabola where every class is about as probable.

    There log β has far to go: scores that say nothing have their optimum at the bound, and it took twenty passes.
    """
    found = newton_line(partial(_at, data, "nll"), beta, _ARRIVED * data.total_weight, *bounds)
    return found._replace(x=math.log(found.x))


def _in_log(sums: LineSums, beta: float) -> LineSums:
    """Turn derivatives in β into derivatives in log β."""
    slope = sums.slope * beta
    return LineSums(sums.value, slope, slope + sums.curvature * beta**2)


def _worth_polishing(candidates: list[LineFound]) -> list[float]:
    """Optima on the pilot rows that could be the best on all rows: within two per cent of the best there."""
    best = min(c.value for c in candidates)
    return [math.exp(c.x) for c in candidates if c.value <= 1.02 * best]


def _basins(data: Data, loss: str, bounds: tuple[float, float]) -> list[float]:
    """Grid points that are local minima of the loss, the best three."""
    few = data.pilot(max(500, _GRID_SCORES // data.columns))
    grid = np.geomspace(*bounds, _GRID)
    values = np.array([_at(few, loss, float(b)).value for b in grid])
    padded = np.concatenate([[np.inf], values, [np.inf]])
    minima = np.flatnonzero((values <= padded[:-2]) & (values <= padded[2:]))
    return [float(b) for b in grid[minima[np.argsort(values[minima], kind="stable")][:3]]]
