"""Where structured scaling begins: a temperature or an ensemble temperature that no label can surprise without end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from ...arrays import inner, tempered_softmax
from ...calibrator import Calibrator
from ...declared import attribute, declared
from ...fits.mixing import Mixing, label_columns
from ...fits.report import FitReport
from ...fits.solvers.newton import Sums, newton
from ...formulas import Term
from ...formulas.functions import floored as floored_formula
from ...invariants import TEMPERATURE, Values
from ...parameters import AnyOf, Number, OneOf
from ...passes import Block, Data
from ...passes.statistic import Largest
from ...traits import Traits
from ...types import Array, Floats, Mask
from ...validation import floored
from ...validation.saturation import ZERO_LOG
from .ensemble import best_ensemble, ensemble_formula
from .temperature import temperature_sums

_NODES = 32  # shares of the uniform distribution that are weighed
_PRECISION = 2.0  # of log T: a temperature is off by a factor of two, e^(1/√2)
_SMALL = 1e-4  # nats that a last step of log T may still gain: far below what rows can tell
_ONE: Array = np.array([1.0])


@declared
class FlooredTemperature(Calibrator):
    """p₀ = w₁ softmax(z / T) + w₂ softmax(z) + w₃ / K with w₃ ≥ ε.

    The ensemble temperature where its two more parameters pay for themselves (BIC), else one temperature (w₂ = 0), with
    a prior: it is off by a factor of two (log T has the precision 2). Rows that the scores tell apart without an error
    say only that T is not large.

    What n rows cannot tell from zero stays off zero: ε is the share of labels that the scores all but exclude, the mean
    of its posterior under the prior of Jeffreys, ε^(-1/2), but at most 1 / (n + 1). Without such a label it is about
    1 / (2 n): where scores are good, a row's worth would be much of the loss.

    Scores further below the top of their row than a float32 softmax can tell from zero count as that far below, where
    that is the better description: a few enormous gaps say nothing about the others.

    Attributes
    ----------
    temperature_ : float
    weights_ : array of shape (3,)
    least_ : float
        ε.
    lowest_ : float
        Least score relative to the top of its row: log of the smallest float32, or -inf.
    """

    _identifier = "floored-temperature"
    _traits = Traits("scaling", "ranking", "top label", "3")
    temperature_: float = attribute(TEMPERATURE)
    weights_: Array = attribute(Values(3, low=0, total=1))
    least_: float = attribute(Number(0, 1))
    lowest_: float = attribute(AnyOf(OneOf(-np.inf), Number(-1e4, 0)))

    def _fit(self, data: Data) -> FitReport:
        found, self.lowest_ = _believable(data), -np.inf
        before = found.before
        if data.reduce(_widest_gap).values[0] > -ZERO_LOG:
            raised = _believable(data.viewed(Raised(ZERO_LOG)))
            if raised.after < found.after:
                found, self.lowest_ = raised, ZERO_LOG
        self.temperature_, self.weights_, self.least_ = 1.0 / found.beta, found.weights, found.least
        details = {"effective_parameters": found.parameters}
        return FitReport(found.passes, found.converged, "nll", before, found.after, details=details)

    def _count_parameters(self) -> float:
        return 3.0  # T and two of the weights, which sum to one

    def _map(self, logits: Floats) -> Floats:
        first, second, third = self.weights_.tolist()
        logits = floored(logits)  # as in fit: T is made for the floor
        if self.lowest_ > -np.inf:
            logits = _raised(logits, self.lowest_)
        return tempered_softmax(logits, 1.0 / self.temperature_, (first, second, third))

    def _formula(self, z: Term) -> Term:
        z = floored_formula(z)
        if self.lowest_ > -np.inf:
            z = z.at_least(z.row_max() + self.lowest_)
        return ensemble_formula(z, self.temperature_, self.weights_)


@dataclass(frozen=True)
class Raised:
    """A view of rows whose scores are at least so far from the top of their row."""

    lowest: float

    def __call__(self, block: Block) -> Block:
        """Return the block with its lowest scores raised."""
        return block.with_logits(_raised(block.logits, self.lowest))


def _raised(logits: Floats, lowest: float) -> Floats:
    return np.maximum(logits, logits.max(axis=1, keepdims=True) + logits.dtype.type(lowest))


def _widest_gap(block: Block) -> Largest:
    with np.errstate(over="ignore"):  # a gap may be too wide for single precision
        return Largest(np.array([float(np.max(block.logits.max(axis=1) - block.logits.min(axis=1)))]))


class _Believable(NamedTuple):
    """β, the weights, ε, the mean log-losses without and with them, how many numbers there are, passes, an optimum?"""

    beta: float
    weights: Array
    least: float
    before: float
    after: float
    parameters: float
    passes: int
    converged: bool


def _believable(data: Data) -> _Believable:
    """Return the temperature with its prior, or the ensemble temperature where that pays."""
    best, total = best_ensemble(data, "nll"), data.total_weight
    alone = best.alone
    least = _least(data, alone.beta)
    single, mixed = _at_least(np.array([1.0, 0.0, 0.0]), least), _at_least(best.weights, least)
    loss = _mean_loss(data, best.beta, mixed)
    if total * (_mean_loss(data, alone.beta, single) - loss) > np.log(total + 1.0):
        return _Believable(best.beta, mixed, least, alone.before, loss, 3.0, best.passes + 3, best.converged)
    beta, passes = _believed(data, alone.beta)
    loss = _mean_loss(data, beta, single)
    return _Believable(beta, single, least, alone.before, loss, 1.0, best.passes + passes + 4, True)


def _at_least(weights: Array, uniform: float) -> Array:
    """Return mixture weights with at least so much of the uniform distribution."""
    if weights[2] >= uniform:
        return weights
    rest = weights[:2] * (1.0 - uniform) / max(weights[:2].sum(), 1e-300)
    return np.append(rest, uniform)


def _mean_loss(data: Data, beta: float, weights: Array) -> float:
    """Return the mean log-loss of w₁ softmax(β z) + w₂ softmax(z) + w₃ / K."""
    return Mixing((beta, 1.0, 0.0), "nll").mean_loss(data, weights)


def _least(data: Data, beta: float) -> float:
    """Return ε for the scores at a temperature."""
    row = 1.0 / (data.total_weight + 1.0)
    shares = np.geomspace(row**2, 1.0, _NODES)
    losses = data.reduce(partial(_losses_with, mixing=Mixing((beta, 0.0), "nll"), shares=shares))
    likely = np.exp(losses.min() - losses) * np.sqrt(shares)  # ε^(-1/2) dε on a grid of equal steps in log ε
    return min(float(likely @ shares / likely.sum()), row)


def _losses_with(block: Block, mixing: Mixing, shares: Array) -> Array:
    """One pass: the log-loss of softmax(β z) with each of these shares of the uniform distribution."""
    p, uniform = block.kept(label_columns, mixing).T
    return np.array([-inner(block.weight_array, np.log(p + share * (uniform - p))) for share in shares])


def _believed(data: Data, beta: float) -> tuple[float, int]:
    """Return the β of maximal posterior, from that of maximal likelihood, and the passes."""

    def posterior(x: Array, _: Mask) -> Sums:
        at = float(x[0, 0])
        b = np.exp(at)
        value, first, second = data.reduce(partial(temperature_sums, betas=b * _ONE))[0]
        slope, bend = b * first + _PRECISION * at, b * first + b * b * second + _PRECISION
        return Sums(value + 0.5 * _PRECISION * at * at * _ONE, slope * _ONE[:, None], bend * _ONE[:, None, None])

    found = newton(posterior, np.log(beta) * _ONE[:, None], _SMALL)
    return float(np.exp(found.theta[0, 0])), found.passes
