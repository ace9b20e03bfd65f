"""The linear scaling maps as one problem: softmax(u + D x + b) around temperature scaling, and its passes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...passes import Sample, reduce
from ...threads import get_threads

__all__ = ["Frame", "Problem", "Sums"]

_BLOCK = 1 << 20  # scores worked on at a time where D is a full matrix


@dataclass(frozen=True)
class Frame:
    """How logits become features.

    With u = log softmax(β z), the features are x = max(u, floor), less their mean over the classes where ``centred``.
    Both are free of the logits' scale and shift. Below the floor a class is as good as impossible: u itself goes on
    (a probability of zero stays zero) but moves nothing else. ``confidence`` adds one more feature: that mean,
    standardised by the (mean, deviation) given, which tells sure rows from unsure ones.
    """

    beta: float
    floor: float
    centred: bool = False
    confidence: tuple[float, float] | None = None

    def columns(self, k: int) -> int:
        """Return how many features a row of K classes has."""
        return k if self.confidence is None else k + 1

    def centres(self, logits: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return what each row is centred by: log Σ exp(β z), and the mean of max(u, floor)."""
        return _core.linear_centres(logits, self.beta, self.floor, get_threads())

    def features(self, logits: NDArray[np.floating], centres: NDArray[np.float64]) -> NDArray[np.floating]:
        """Return x."""
        out = np.empty_like(logits)
        _core.linear_features(logits, centres, self.beta, self.floor, self.centred, get_threads(), out)
        if self.confidence is None:
            return out
        mean, deviation = self.confidence
        return np.column_stack([out, ((centres[:, 1] - mean) / deviation).astype(out.dtype)])

    def apply(
        self, logits: NDArray[np.floating], weights: NDArray[np.float64], intercept: NDArray[np.float64]
    ) -> NDArray[np.floating]:
        """Return softmax(u + D x + b); one-dimensional ``weights`` are the diagonal of D."""
        logits = np.ascontiguousarray(logits)
        centres = self.centres(logits)
        if weights.ndim == 1:
            out = np.empty_like(logits)
            args = (self.beta, self.floor, self.centred, weights, intercept, get_threads(), out)
            _core.vector_apply(logits, centres, *args)
            return out
        scores = self.features(logits, centres) @ weights.T.astype(logits.dtype)
        _core.softmax_residual(scores, logits, centres, None, None, self.beta, intercept, get_threads())
        return scores


class Sums(NamedTuple):
    """Sums over rows: the log-loss, its gradient in (D, b), and the diagonal of its Hessian where asked for."""

    loss: float
    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, their frame and the shape of D: diagonal or full. Parameters are one flat vector (D, b)."""

    sample: Sample
    frame: Frame
    full: bool
    centres: NDArray[np.float64]

    @classmethod
    def of(cls, sample: Sample, frame: Frame, full: bool) -> Problem:
        """Return the problem of these rows."""
        return cls(sample, frame, full, frame.centres(sample.logits))

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.sample.n_classes

    @property
    def size(self) -> int:
        """Number of parameters."""
        return (self.frame.columns(self.k) if self.full else 1) * self.k + self.k

    def weighted(self, weights: NDArray[np.float64]) -> Problem:
        """Return the same rows with other weights; weight 0 leaves a row out."""
        return replace(self, sample=replace(self.sample, weights=weights))

    def split(self, theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return D (its diagonal, where it has no more) and b."""
        weights = theta[: -self.k]
        return (weights.reshape(self.k, -1) if self.full else weights), theta[-self.k :]

    def sums(self, theta: NDArray[np.float64], curvature: bool = False) -> Sums:
        """One pass: the weighted sums of the loss and its derivatives."""
        one_pass = self._full_sums if self.full else self._diagonal_sums
        return Sums(*reduce(lambda rows: one_pass(rows, theta, curvature), self.sample))

    def losses(self, theta: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the log-losses of some rows."""
        weights, intercept = self.split(theta)
        found: list[NDArray[np.float64]] = []
        for part in np.array_split(rows, max(1, len(rows) * self.k // _BLOCK)):
            z, c = self.sample.logits[part], self.centres[part]
            x = self.frame.features(z, c)
            scores = x @ weights.T.astype(x.dtype) if self.full else x * weights.astype(x.dtype)
            args = (self.sample.labels[part], None, self.frame.beta, intercept, get_threads())
            found.append(_core.softmax_residual(scores, z, c, *args))
        return np.concatenate(found)

    def _centres_of(self, rows: Sample) -> NDArray[np.float64]:
        return self.centres if rows is self.sample else self.frame.centres(rows.logits)

    def _diagonal_sums(
        self, rows: Sample, theta: NDArray[np.float64], curvature: bool
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64] | None]:
        d, b = self.split(theta)
        f = self.frame
        loss, sums = _core.vector_sums(
            rows.logits,
            self._centres_of(rows),
            rows.labels,
            rows.weights,
            *(f.beta, f.floor, f.centred, np.ascontiguousarray(d), np.ascontiguousarray(b), curvature, get_threads()),
        )
        return loss, sums[:2].ravel(), sums[[2, 4]].ravel() if curvature else None

    def _full_sums(
        self, rows: Sample, theta: NDArray[np.float64], curvature: bool
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64] | None]:
        weights, intercept = self.split(theta)
        weights = weights.T.astype(rows.logits.dtype)
        centres = self._centres_of(rows)
        loss, gradient = 0.0, np.zeros(self.size)
        hessian = np.zeros(self.size) if curvature else None
        for part in _parts(rows, self.k):
            z, c, y = rows.logits[part], centres[part], rows.labels[part]
            w = None if rows.weights is None else rows.weights[part]
            x = self.frame.features(z, c)
            r = x @ weights
            losses = _core.softmax_residual(r, z, c, y, w, self.frame.beta, intercept, get_threads())
            loss += float(losses.sum() if w is None else losses @ w)
            self._add(gradient, r, x)
            if hessian is not None:
                self._add(hessian, _variances(r, y, w), x * x)
        return loss, gradient, hessian

    def _add(self, total: NDArray[np.float64], by_class: NDArray[np.floating], x: NDArray[np.floating]) -> None:
        weights, intercept = self.split(total)
        weights += by_class.T @ x
        intercept += by_class.sum(axis=0, dtype=np.float64)


def _parts(rows: Sample, k: int) -> list[NDArray[np.int64] | slice]:
    """Blocks of rows of positive weight."""
    step = max(1, _BLOCK // k)
    if rows.weights is None or rows.weights.all():
        return [slice(i, i + step) for i in range(0, rows.n, step)]
    used = np.flatnonzero(rows.weights)
    return [used[i : i + step] for i in range(0, len(used), step)]


def _variances(
    residuals: NDArray[np.floating], labels: NDArray[np.int64], weights: NDArray[np.float64] | None
) -> NDArray[np.floating]:
    """Return w p (1 - p) from w (p - onehot)."""
    w = residuals.dtype.type(1) if weights is None else weights.astype(residuals.dtype)[:, None]
    p = residuals / w
    p[np.arange(len(labels)), labels] += 1
    return p * (1 - p) * w
