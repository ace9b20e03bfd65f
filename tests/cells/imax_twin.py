"""The slow twin of the I-Max kernel, in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit, log_expit

from calibrant.cells.fine import FineCells
from calibrant.cells.imax import IMax

_MOST = 1000  # updates; a fixed point is usually met within a hundred
_START_CELLS = 1024  # cells the start looks at
_MODEL_CELLS = 4096  # cells the sigmoid model is fitted on
_FLAT = 700.0  # beyond this log-odds the other probability leaves float64


class _Model:
    """Cells under the sigmoid model: prefix sums of what the updates need."""

    def __init__(self, cells: FineCells, slope: float, offset: float) -> None:
        self.x = np.clip(slope * cells.scores + offset, -_FLAT, _FLAT)
        self.weights = cells.weights
        one, zero = cells.weights * expit(self.x), cells.weights * expit(-self.x)
        # Sums of small terms first, so that differences of prefix sums keep their digits in both tails.
        self.ones = np.concatenate([[0.0], np.cumsum(one)])
        self.zeros = np.concatenate([np.cumsum(zero[::-1])[::-1], [0.0]])
        self.total = float(cells.weights.sum())
        shares = np.array([self.ones[-1], self.zeros[0]]) / self.total
        self.prior_entropy = float(entr(shares).sum())

    def parts(self, bounds: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Expected positives and negatives of each bin."""
        stops = np.concatenate([[0], bounds, [len(self.x)]])
        return np.diff(self.ones[stops]), -np.diff(self.zeros[stops])

    def representatives(self, bounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """φ of each bin: the log-odds of the mean probability."""
        one, zero = self.parts(bounds)
        tiny = np.finfo(np.float64).tiny
        return np.log(np.maximum(one, tiny)) - np.log(np.maximum(zero, tiny))

    def distortions(self, bounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Cross-entropy of each bin with its own best φ, in nats."""
        one, zero = self.parts(bounds)
        phi = self.representatives(bounds)
        return -(one * log_expit(phi) + zero * log_expit(-phi))

    def loss(self, bounds: NDArray[np.int64]) -> float:
        """Eq. 4 in bits, at the best representatives: minus the mutual information the model believes in."""
        return float((self.distortions(bounds).sum() / self.total - self.prior_entropy) / np.log(2.0))

    def bounds(self, centres: NDArray[np.float64]) -> NDArray[np.int64]:
        """Bins of increasing representatives, by the closed form of the edges."""
        found = np.unique(np.searchsorted(self.x, closed_form_edges(centres), side="left"))
        return found[(found > 0) & (found < len(self.x))]

    def filled(self, bounds: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
        """Split the bins of largest distortion until there are as many as asked for, or none can be split."""
        while len(bounds) + 1 < bins:
            stops = np.concatenate([[0], bounds, [len(self.x)]])
            cost = np.where(np.diff(stops) > 1, self._excess(bounds, stops), -1.0)
            m = int(cost.argmax())
            if cost[m] < 0:
                break
            middle = int(np.searchsorted(self.x, self.representatives(bounds)[m]))
            bounds = np.sort(np.append(bounds, np.clip(middle, stops[m] + 1, stops[m + 1] - 1)))
        return bounds

    def _excess(self, bounds: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.float64]:
        """What a bin loses against keeping all its cells apart."""
        p = expit(self.x)
        kept = np.add.reduceat(self.weights * (entr(p) + entr(expit(-self.x))), stops[:-1])
        return np.maximum(self.distortions(bounds) - kept, 0.0)


def slow_imax(cells: FineCells, bins: int, *, affine: bool = True, seed: int = 0) -> IMax:
    """Return the bins of I-Max: Eq. 5 until no cell changes its bin."""
    slope, offset = logistic(cells.thinned(_MODEL_CELLS)) if affine else (1.0, 0.0)
    model = _Model(cells, slope, offset)
    bounds = model.filled(model.bounds(_start(model, bins, seed)), bins)
    losses = [model.loss(bounds)]
    for _ in range(_MOST):
        moved = model.filled(model.bounds(model.representatives(bounds)), bins)
        if np.array_equal(moved, bounds):
            return IMax(bounds, tuple(losses), True, slope, offset)
        bounds = moved
        losses.append(model.loss(bounds))
    return IMax(bounds, tuple(losses), False, slope, offset)


def closed_form_edges(centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores at which neighbouring representatives fit equally well (Eq. 5), for increasing φ."""
    low, high = centres[:-1], centres[1:]
    apart = high - low > 1e-9 * np.maximum(1.0, np.abs(high))
    with np.errstate(divide="ignore", invalid="ignore"):
        edges = _log_difference(high, low) - _log_difference(-low, -high)
    return np.where(apart, edges, 0.5 * (low + high))


def _log_difference(high: NDArray[np.float64], low: NDArray[np.float64]) -> NDArray[np.float64]:
    """log[sp(high) - sp(low)] without leaving the log domain: sp(x) = exp(x) far below zero."""
    top, bottom = _log_softplus(high), _log_softplus(low)
    return top + np.log(-np.expm1(bottom - top))


def _log_softplus(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(x < -36.0, x, np.log(np.logaddexp(0.0, np.maximum(x, -36.0))))


def jensen_shannon(p: NDArray[np.float64] | float, q: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Return the Jensen–Shannon divergence of Bernoulli(p) and Bernoulli(q), in nats."""
    p, q = np.asarray(p), np.asarray(q)
    middle = 0.5 * (p + q)
    apart = entr(middle) + entr(1 - middle) - 0.5 * (entr(p) + entr(1 - p) + entr(q) + entr(1 - q))
    return np.maximum(apart, 0.0)


def _start(model: _Model, bins: int, seed: int) -> NDArray[np.float64]:
    """k-means++ with the Jensen–Shannon distance and 2 + ⌊ln M⌋ trials a centre: increasing log-odds of the centres."""
    generator = np.random.default_rng(seed)
    x, weights = _thinned(model)
    p = expit(x)
    chosen = [_draw(generator, weights, 1)[0]]
    nearest = jensen_shannon(p, p[chosen[0]])
    for _ in range(1, bins):
        if not (weights * nearest).any():
            break
        trials = _draw(generator, weights * nearest, 2 + int(np.log(bins)))
        distances = np.minimum(nearest, jensen_shannon(p, p[trials][:, None]))
        best = int((distances @ weights).argmin())
        chosen.append(trials[best])
        nearest = distances[best]
    return np.unique(x[chosen])


def _thinned(model: _Model) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """At most a few thousand cells to start from: neighbours merged to equal spans of probability and of mass."""
    if len(model.x) <= _START_CELLS:
        return model.x, model.weights
    mass = np.cumsum(model.weights) / model.total
    span = np.arcsin(np.sqrt(expit(model.x))) / (np.pi / 2)  # equal steps are about equal Jensen-Shannon distances
    place = np.floor((mass + span) * (_START_CELLS // 2)).astype(np.int64)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(place) > 0]))
    weights = np.add.reduceat(model.weights, starts)
    return np.add.reduceat(model.weights * model.x, starts) / weights, weights


def _draw(generator: np.random.Generator, weights: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Draw cells in proportion to weights, by place in the sorted scores: equal for a row twice and a weight of two."""
    steps = np.cumsum(weights)
    return np.minimum(np.searchsorted(steps, generator.random(count) * steps[-1], side="right"), len(weights) - 1)


def logistic(cells: FineCells, most: int = 50) -> tuple[float, float]:
    """Return slope and offset of the logistic regression of the outcomes on the scores.

    Newton with Platt's targets ((n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2)), which keep it finite where outcomes can be
    separated. (1, 0), the scores as they are, where they say nothing or the wrong thing about the outcomes.
    """
    positive = float(cells.outcomes.sum())
    negative = float(cells.weights.sum()) - positive
    targets = cells.outcomes * (positive + 1) / (positive + 2) + (cells.weights - cells.outcomes) / (negative + 2)
    centre = float(np.average(cells.scores, weights=cells.weights))
    scale = float(np.sqrt(np.average((cells.scores - centre) ** 2, weights=cells.weights)))
    if scale == 0 or positive == 0 or negative == 0:
        return 1.0, 0.0
    t = (cells.scores - centre) / scale
    beta = _newton(t, cells.weights, targets, np.array([scale, centre]), most)
    slope = float(beta[0] / scale)
    if not np.isfinite(beta).all() or slope <= 0:
        return 1.0, 0.0
    return slope, float(beta[1] - slope * centre)


def _newton(
    t: NDArray[np.float64],
    weights: NDArray[np.float64],
    targets: NDArray[np.float64],
    beta: NDArray[np.float64],
    most: int,
) -> NDArray[np.float64]:
    """Damped Newton steps on the convex log-loss Σ w log(1 + e^x) - targets · x, x = β₀ t + β₁."""

    def loss(b: NDArray[np.float64]) -> float:
        x = b[0] * t + b[1]
        return float(weights @ np.logaddexp(0.0, x) - targets @ x)

    value, total = loss(beta), float(weights.sum())
    for _ in range(most):
        p = expit(beta[0] * t + beta[1])
        slack, curvature = weights * p - targets, weights * p * (1 - p)
        gradient = np.array([slack @ t, slack.sum()])
        cross = curvature @ t
        hessian = np.array([[curvature @ t**2, cross], [cross, curvature.sum()]]) + 1e-12 * total * np.eye(2)
        step = -np.linalg.solve(hessian, gradient)
        decrease = -float(gradient @ step)
        if decrease < 1e-12 * total:
            break
        size = 1.0
        while (moved := loss(beta + size * step)) > value - 1e-4 * size * decrease and size > 1e-9:
            size /= 2
        beta, value = beta + size * step, moved
    return beta
