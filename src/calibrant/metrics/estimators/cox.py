"""Cox's line: log-odds of the frequency = a + b·log-odds of the score (Cox 1958)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from ...arrays import inner
from ...cells.logistic import LogisticFit, fit_logistic
from ...cells.pairs import Pairs
from ...types import Array

UNKNOWN = 100.0  # a standard error beyond which nothing is known of a coefficient: outcomes are separable
LOOSE = 10.0  # deviation of the prior of intercept and slope where outcomes are separable: it keeps the line finite


@dataclass(frozen=True, eq=False)
class Line:
    """A fitted line: its log-odds, weights and outcomes by cell (in rows), the fit, and whether a prior was needed."""

    x: Array
    weights: Array
    outcomes: Array
    fit: LogisticFit
    with_slope: bool
    separable: bool = False
    constant: bool = False


def line_of(pairs: Pairs, *, slope: bool = True) -> Line:
    """Fit the line, or the shift with b = 1, by maximum likelihood.

    Scores of exactly 0 and 1 have no log-odds and are left out (`outside_of` counts them). Where outcomes are
    separable, no line is the most likely one, and a loose normal prior about the identity decides (deviation 10).
    """
    cells = pairs.cells
    inside = (cells.scores > 0) & (cells.scores < 1)
    scale = pairs.rows / float(cells.weights.sum())
    x = logit(cells.scores[inside])
    weights, outcomes = cells.weights[inside] * scale, cells.outcomes[inside] * scale
    ones = np.ones((len(x), 1))
    design, offset = (np.column_stack([ones, x]), 0.0) if slope else (ones, x)
    identity = np.array([0.0, 1.0])[: design.shape[1]]
    constant = slope and (len(x) < 2 or float(np.ptp(x)) == 0.0)
    one_sided = outcomes.sum() <= 0 or outcomes.sum() >= weights.sum()
    fit = None if constant or one_sided else fit_logistic(design, outcomes, weights, offset=offset, start=identity)
    if fit is not None and fit.converged and float(np.diag(fit.covariance).max()) < UNKNOWN**2:
        return Line(x, weights, outcomes, fit, slope)
    prior = np.eye(len(identity)) / LOOSE**2
    loose = fit_logistic(design, outcomes, weights, offset=offset, penalty=prior, start=identity, centre=identity)
    return Line(x, weights, outcomes, loose, slope, separable=not constant, constant=constant)


def line_covariance(pairs: Pairs, line: Line) -> tuple[Array, Array]:
    """Return the covariance of the coefficients where rows of a cluster may depend, and each one's degrees of freedom.

    The jackknife over clusters in one step (CR3): (G-1)/G·Σ_g d_g d_gᵀ with d_g = (H - H_g)⁻¹u_g, what the line moves
    by where a cluster is left out. A coefficient has as many degrees of freedom as there are clusters that tell of it,
    less one: (Σa_g)²/Σa_g², a_g its entry of H⁻¹H_gH⁻¹.
    """
    clusters = pairs.clusters
    assert clusters is not None  # only asked for where there are some
    inside = (pairs.scores > 0) & (pairs.scores < 1) & (pairs.weight_array > 0)
    x, y, w = (values[inside] for values in (pairs.scores, pairs.outcomes, pairs.weight_array))
    x, w = logit(x), w * (pairs.rows / pairs.total)
    place = np.unique(clusters[inside], return_inverse=True)[1]
    design = np.column_stack([np.ones_like(x), x]) if line.with_slope else np.ones((len(x), 1))
    mean = expit(design @ line.fit.theta + (0.0 if line.with_slope else x))
    sums = _by_cluster(design * (w * (y - mean))[:, None], place)
    products = design[:, :, None] * design[:, None, :] * (w * mean * (1 - mean))[:, None, None]
    own = _by_cluster(products.reshape(len(x), -1), place).reshape(-1, *products.shape[1:])
    bread, count = line.fit.covariance, len(sums)
    moved = np.einsum("gij,gj->gi", np.linalg.pinv(np.linalg.inv(bread) - own, hermitian=True), sums)
    told = np.einsum("ij,gjk,ki->gi", bread, own, bread)
    freedom = told.sum(axis=0) ** 2 / np.maximum((told**2).sum(axis=0), 1e-300) - 1
    return (count - 1) / count * moved.T @ moved, np.maximum(freedom, 1.0 if count > 1 else 0.0)


def _by_cluster(rows: Array, place: NDArray[np.intp]) -> Array:
    return np.stack([np.bincount(place, column).astype(np.float64) for column in rows.T], axis=1)


def outside_of(pairs: Pairs) -> float:
    """Return how many rows have a score of exactly 0 or 1."""
    cells = pairs.cells
    inside = (cells.scores > 0) & (cells.scores < 1)
    return float(cells.weights[~inside].sum()) * pairs.rows / float(cells.weights.sum())


def calibration_slope(pairs: Pairs) -> float:
    """Return b of the line: 1 is right, below 1 too extreme, above 1 too timid; NaN where all scores are one."""
    line = line_of(pairs)
    return float("nan") if line.constant else float(line.fit.theta[1])


def calibration_intercept(pairs: Pairs) -> float:
    """Return a of the line, beside its slope: what rms' val.prob calls Intercept."""
    line = line_of(pairs)
    return float("nan") if line.constant else float(line.fit.theta[0])


def calibration_in_the_large(pairs: Pairs) -> float:
    """Return the shift a with b = 1: above 0 where events happen more often than was said; NaN without log-odds."""
    line = line_of(pairs, slope=False)
    if not len(line.x):
        return float("nan")
    if line.separable:
        return float(np.copysign(np.inf, line.outcomes.sum() - expit(line.x) @ line.weights))
    return float(line.fit.theta[0])


def observed_expected(pairs: Pairs) -> float:
    """Return the number of events over the sum of the scores: 1 is right, above 1 says that scores are too low."""
    w = pairs.weight_array
    expected = inner(w, pairs.scores)
    observed = inner(w, pairs.outcomes)
    return observed / expected if expected > 0 else float("nan") if observed == 0 else float("inf")
