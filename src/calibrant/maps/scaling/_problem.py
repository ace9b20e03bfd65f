"""The linear scaling maps as one problem: softmax(u + D x + b) around temperature scaling, and its passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...passes import Sample, reduce
from ...threads import get_threads

__all__ = ["Frame", "Problem", "Sums"]

_FEW = 32  # classes up to which a full D goes by one fused pass, without matrix products
_KEEP = 1 << 23  # up to this many scores the features of a full D are kept
_MASS = 0.98  # of the variance of a class is in the rows that its block of the Hessian is summed over
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
    kept: NDArray[np.floating] | None = None

    @classmethod
    def of(cls, sample: Sample, frame: Frame, full: bool) -> Problem:
        """Return the problem of these rows; for a full D that fits, the features are computed once and kept."""
        centres = frame.centres(sample.logits)
        keep = full and sample.n_classes > _FEW and sample.logits.size <= _KEEP
        return cls(sample, frame, full, centres, frame.features(sample.logits, centres) if keep else None)

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.sample.n_classes

    @property
    def few(self) -> bool:
        """Whether a full D is small enough for one fused pass to beat matrix products."""
        return self.full and self.k <= _FEW

    @property
    def size(self) -> int:
        """Number of parameters."""
        return (self.frame.columns(self.k) if self.full else 1) * self.k + self.k

    def without(self, rows: NDArray[np.int64]) -> Problem:
        """Return the problem without some rows: by weights of zero where a copy of the scores would be large."""
        if not self.full:
            weights = self.sample.weight_array.copy()
            weights[rows] = 0.0
            return replace(self, sample=replace(self.sample, weights=weights))
        rest = np.delete(np.arange(self.sample.n), rows)
        kept = None if self.kept is None else self.kept[rest]
        return replace(self, sample=self.sample.take(rest), centres=self.centres[rest], kept=kept)

    def split(self, theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return D (its diagonal, where it has no more) and b."""
        weights = theta[: -self.k]
        return (weights.reshape(self.k, -1) if self.full else weights), theta[-self.k :]

    def sums(self, theta: NDArray[np.float64], curvature: bool = False) -> Sums:
        """One pass: the weighted sums of the loss and its derivatives."""
        one_pass = self._diagonal_sums
        if self.full:
            one_pass = self._few_sums if self.few and not curvature else self._full_sums
        return Sums(*reduce(lambda rows: one_pass(rows, theta, curvature), self.sample))

    def blocks(self, theta: NDArray[np.float64], classes: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
        """Yield the block of the Hessian of each class, over its row of D and its intercept.

        Only rows in which the class is in doubt matter to it: those that hold nearly all of its variance p (1 - p).
        """
        if not self.full:
            yield from self._diagonal_blocks(theta, classes)
            return
        if self.few:
            yield from reduce(lambda rows: self._few_blocks(rows, theta), self.sample)[classes]
            return
        variances = np.concatenate([self._variances(theta, part)[:, classes] for part in _parts(self.sample, self.k)])
        used = np.concatenate([np.arange(self.sample.n)[part] for part in _parts(self.sample, self.k)])
        for column in variances.T:
            rows, weights = _most(column)
            z = self._features(self.sample, self.centres[used[rows]], used[rows])
            z = np.column_stack([z, np.ones(len(rows), dtype=z.dtype)]) * np.sqrt(weights).astype(z.dtype)[:, None]
            yield (z.T @ z).astype(np.float64)

    def losses(self, theta: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the log-losses of some rows."""
        weights, intercept = self.split(theta)
        found: list[NDArray[np.float64]] = []
        for part in np.array_split(rows, max(1, len(rows) * self.k // _BLOCK)):
            z, c = self.sample.logits[part], self.centres[part]
            x = self._features(self.sample, c, part)
            scores = x @ weights.T.astype(x.dtype) if self.full else x * weights.astype(x.dtype)
            args = (self.sample.labels[part], None, self.frame.beta, intercept, get_threads())
            found.append(_core.softmax_residual(scores, z, c, *args))
        return np.concatenate(found)

    def _centres_of(self, rows: Sample) -> NDArray[np.float64]:
        return self.centres if rows is self.sample else self.frame.centres(rows.logits)

    def _diagonal_blocks(self, theta: NDArray[np.float64], classes: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
        for dd, db, bb in reduce(lambda rows: self._vector_sums(rows, theta, True)[1], self.sample)[2:, classes].T:
            yield np.array([[dd, db], [db, bb]])

    def _few_blocks(self, rows: Sample, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        return _core.matrix_blocks(rows.logits, self._centres_of(rows), rows.weights, *self._few_arguments(theta))

    def _few_sums(
        self, rows: Sample, theta: NDArray[np.float64], curvature: bool
    ) -> tuple[float, NDArray[np.float64], None]:
        args = (self._centres_of(rows), rows.labels, rows.weights, *self._few_arguments(theta))
        loss, sums = _core.matrix_sums(rows.logits, *args)
        return loss, np.concatenate([sums[:-1].T.ravel(), sums[-1]]), None

    def _few_arguments(self, theta: NDArray[np.float64]) -> tuple[Any, ...]:
        weights, intercept = self.split(theta)
        f = self.frame
        mean, scale = (0.0, 0.0) if f.confidence is None else (f.confidence[0], 1.0 / f.confidence[1])
        turned = np.ascontiguousarray(weights.T)
        return f.beta, f.floor, f.centred, mean, scale, turned, np.ascontiguousarray(intercept), get_threads()

    def _variances(self, theta: NDArray[np.float64], part: NDArray[np.int64] | slice) -> NDArray[np.floating]:
        """Return w p (1 - p) of some rows."""
        s = self.sample
        z, c, y = s.logits[part], self.centres[part], s.labels[part]
        w = None if s.weights is None else s.weights[part]
        weights, intercept = self.split(theta)
        r = self._features(s, c, part) @ weights.T.astype(z.dtype)
        _core.softmax_residual(r, z, c, y, w, self.frame.beta, intercept, get_threads())
        return _variances(r, y, w)

    def _features(
        self, rows: Sample, centres: NDArray[np.float64], part: NDArray[np.int64] | slice
    ) -> NDArray[np.floating]:
        if self.kept is not None and rows is self.sample:
            return self.kept[part]
        return self.frame.features(rows.logits[part], centres)

    def _diagonal_sums(
        self, rows: Sample, theta: NDArray[np.float64], curvature: bool
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64] | None]:
        loss, sums = self._vector_sums(rows, theta, curvature)
        return loss, sums[:2].ravel(), sums[[2, 4]].ravel() if curvature else None

    def _vector_sums(
        self, rows: Sample, theta: NDArray[np.float64], curvature: bool
    ) -> tuple[float, NDArray[np.float64]]:
        d, b = (np.ascontiguousarray(part) for part in self.split(theta))
        f = self.frame
        args = (f.beta, f.floor, f.centred, d, b, curvature, get_threads())
        return _core.vector_sums(rows.logits, self._centres_of(rows), rows.labels, rows.weights, *args)

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
            x = self._features(rows, c, part)
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


def _most(variances: NDArray[np.floating]) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
    """Return the rows that hold nearly all of a class's variance, and weights that make up for the others."""
    order = np.argsort(-variances, kind="stable")
    mass = np.cumsum(variances[order], dtype=np.float64)
    if mass[-1] <= 0:
        return order[:1], variances[order[:1]]
    rows = order[: int(np.searchsorted(mass, _MASS * mass[-1])) + 1]
    return rows, variances[rows] * (mass[-1] / mass[len(rows) - 1])


def _variances(
    residuals: NDArray[np.floating], labels: NDArray[np.int64], weights: NDArray[np.float64] | None
) -> NDArray[np.floating]:
    """Return w p (1 - p) from w (p - onehot)."""
    w = residuals.dtype.type(1) if weights is None else weights.astype(residuals.dtype)[:, None]
    p = residuals / w
    p[np.arange(len(labels)), labels] += 1
    return p * (1 - p) * w
