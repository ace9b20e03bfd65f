"""A penalised spline of the log-odds: the smooth calibration curve, with a band for all of it at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit, logit

from ..types import Array
from .logistic import LogisticFit, fit_logistic
from .pairs import Cells, Pairs

_KNOTS = 12  # a smoothing spline with a penalty hardly gains by more
_GROUPS = 1500  # cells beyond which neighbours are joined for the fit
_STRENGTHS = 10.0 ** np.linspace(5, -3, 17)  # of the penalty, from a line to almost free, on a scale of one
_FARTHEST = 36.7  # log-odds at which float64 probabilities become 1
_START = 8.0  # log-odds where the search begins at most: farther out the likelihood is too flat to find back from
_DRAWS = 4000  # of the posterior, for the band


@dataclass(frozen=True, eq=False)
class LogitSpline:
    """A natural cubic spline of log-odds in log-odds; linear beyond its end knots."""

    knots: Array  # (k,): in log-odds
    fit: LogisticFit  # its coefficients are the values at the knots
    strength: float  # of the penalty on the second derivative, chosen by the data
    # (k, k): of the values at the knots; a Bayesian one, which knows of the curve's bias too (Wahba 1983).
    covariance: Array

    def at(self, scores: Array) -> Array:
        """Return the frequency at each score."""
        return expit(_basis(_odds(scores), self.knots) @ self.fit.theta)

    def band(self, scores: Array, confidence: float = 0.95) -> tuple[Array, Array]:
        """Return limits that hold for all scores at once with the stated confidence."""
        basis = _basis(_odds(scores), self.knots)
        middle, root = basis @ self.fit.theta, self._root
        error = np.sqrt(np.maximum(((basis @ root) ** 2).sum(axis=1), 1e-300))
        drawn = np.random.default_rng(0).normal(size=(_DRAWS, len(self.knots))) @ (basis @ root).T
        reach = float(np.quantile(np.abs(drawn / error).max(axis=1), confidence))
        return expit(middle - reach * error), expit(middle + reach * error)

    @property
    def _root(self) -> Array:
        values, vectors = np.linalg.eigh(self.covariance)
        return vectors * np.sqrt(np.maximum(values, 0.0))


def logit_spline(pairs: Pairs) -> LogitSpline:
    """Fit the curve: λ∫f″² is penalised, lines are free, and λ is the one of greatest marginal likelihood (Laplace)."""
    cells = grouped(pairs.cells, pairs.rows)
    x = _odds(cells.scores)
    knots = _knots_of(x, cells.weights)
    basis, roughness = _basis(x, knots), _roughness(knots)
    best, chosen, strength = -np.inf, None, _STRENGTHS[0]
    start = knots / max(1.0, float(np.abs(knots).max()) / _START)
    for candidate in _STRENGTHS if len(knots) > 2 else _STRENGTHS[:1]:
        fit = fit_logistic(basis, cells.outcomes, cells.weights, penalty=_penalty(roughness, candidate), start=start)
        start = fit.theta
        value = _evidence(fit, candidate, len(knots))
        if value > best + 1e-6:  # ties go to the smoother one, which comes first
            best, chosen, strength = value, fit, float(candidate)
    assert chosen is not None  # the first is better than nothing
    return LogitSpline(knots, chosen, strength, _covariance(chosen, pairs, knots))


def _odds(scores: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.clip(logit(scores), -_FARTHEST, _FARTHEST)


def grouped(cells: Cells, rows: float) -> Cells:
    """Cells in rows; neighbours are joined where there are many."""
    scale = rows / float(cells.weights.sum())
    if len(cells.scores) <= _GROUPS:
        return Cells(cells.scores, cells.weights * scale, cells.outcomes * scale)
    before = np.cumsum(cells.weights) - cells.weights
    place = np.floor(before * (_GROUPS / cells.weights.sum()))
    first = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
    weights = np.add.reduceat(cells.weights, first)
    scores = expit(np.add.reduceat(cells.weights * _odds(cells.scores), first) / weights)
    return Cells(scores, weights * scale, np.add.reduceat(cells.outcomes, first) * scale)


def _knots_of(x: Array, weights: Array) -> Array:
    """Quantiles of the log-odds, from end to end, no two closer than a hundredth of their range."""
    below = (np.cumsum(weights) - weights / 2) / weights.sum()
    places = np.interp(np.linspace(0.0, 1.0, _KNOTS), below, x)
    places[[0, -1]] = x[0], x[-1]
    least = 0.01 * float(np.ptp(places))
    kept = [float(places[0])]
    for place in places[1:-1].tolist():
        if place - kept[-1] > least and places[-1] - place > least:
            kept.append(place)
    if places[-1] - kept[0] > 1e-9:
        kept.append(float(places[-1]))
    else:
        kept = [kept[0] - 0.5, kept[0] + 0.5]
    return np.array(kept)


def _natural(knots: Array) -> CubicSpline:
    """Return the natural splines that are one at one knot and zero at the others."""
    return CubicSpline(knots, np.eye(len(knots)), bc_type="natural")


def _roughness(knots: Array) -> Array:
    """∫f″² as a quadratic form of the values at the knots, times the cube of their range: free of scale."""
    bend, h = _natural(knots)(knots, 2), np.diff(knots)  # f″ is linear between knots
    left, right = bend[:-1], bend[1:]
    mixed = (left.T * h) @ right
    return (((left.T * h) @ left + (right.T * h) @ right) / 3 + (mixed + mixed.T) / 6) * float(np.ptp(knots)) ** 3


def _penalty(roughness: Array, strength: float) -> Array:
    return strength * 1e-2 * roughness


def _basis(x: Array, knots: Array) -> Array:
    """Return the matrix from values at the knots to values at x: cubic between, linear beyond."""
    spline = _natural(knots)
    left, right = spline(knots[[0, -1]], 1)
    found = spline(np.clip(x, knots[0], knots[-1]))
    return found + np.minimum(x - knots[0], 0)[:, None] * left + np.maximum(x - knots[-1], 0)[:, None] * right


def _evidence(fit: LogisticFit, strength: float, k: int) -> float:
    """Laplace's approximation of the marginal likelihood, up to a constant; lines have a flat prior."""
    penalised = fit.likelihood - 0.5 * float(fit.theta @ fit.penalty @ fit.theta)
    _, size = np.linalg.slogdet(fit.curvature + fit.penalty + 1e-10 * np.eye(k))
    return penalised - 0.5 * float(size) + 0.5 * (k - 2) * float(np.log(strength))


def _covariance(fit: LogisticFit, pairs: Pairs, knots: Array) -> Array:
    bread = fit.covariance
    if pairs.clusters is None:
        return bread
    basis = _basis(_odds(pairs.scores), knots)
    residual = pairs.weight_array * (pairs.rows / pairs.total) * (pairs.outcomes - expit(basis @ fit.theta))
    sums = np.stack([np.bincount(pairs.clusters, column) for column in (basis * residual[:, None]).T], axis=1)
    count = len(np.unique(pairs.clusters))
    return bread @ (sums.T @ sums * count / max(count - 1, 1) + fit.penalty) @ bread
