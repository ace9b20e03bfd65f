"""The linear scaling maps as one problem: softmax(u + D x + b) around temperature scaling, and its passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...arrays import row_subsample
from ...passes import Sample, reduce
from ...threads import get_threads

__all__ = ["Frame", "Problem", "Sums"]

_FEW = 32  # classes up to which a full D goes by one fused pass, without matrix products
_KEEP = 1 << 23  # up to this many scores the features of a full D are kept
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
    """Sums over rows: the log-loss, and its gradient in (D, b)."""

    loss: float
    gradient: NDArray[np.float64]


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

    def sums(self, theta: NDArray[np.float64]) -> Sums:
        """One pass: the weighted sums of the loss and its gradient."""
        one_pass = self._diagonal_sums
        if self.full:
            one_pass = self._few_sums if self.few else self._full_sums
        return Sums(*reduce(lambda rows: one_pass(rows, theta), self.sample))

    def blocks(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the block of the Hessian of each class, over its row of D and its intercept: (K, m + 1, m + 1).

        For a diagonal D, or a full one of few classes.
        """
        if self.few:
            return reduce(lambda rows: self._few_blocks(rows, theta), self.sample)
        dd, db, bb = reduce(lambda rows: self._vector_sums(rows, theta, True)[1], self.sample)[2:]
        return np.stack([dd, db, db, bb], axis=1).reshape(self.k, 2, 2)

    def variances(
        self, theta: NDArray[np.float64], most: int
    ) -> Iterator[tuple[NDArray[np.floating], NDArray[np.floating]]]:
        """Yield blocks of (x, 1) and of w p (1 - p), from at most so many rows, weighted up to all of them."""
        rows = self.sample.take(row_subsample(self.sample.n, most))
        centres = self.centres[row_subsample(self.sample.n, most)]
        scale = self.sample.total_weight / max(rows.total_weight, 1e-300)
        weights, intercept = self.split(theta)
        turned = weights.T.astype(rows.logits.dtype)
        for part in _parts(rows, self.k):
            z, c = rows.logits[part], centres[part]
            x = self.frame.features(z, c)
            p = x @ turned
            _core.softmax_residual(p, z, c, None, None, self.frame.beta, intercept, get_threads())
            w = np.full(len(p), scale) if rows.weights is None else scale * rows.weights[part]
            v = p * (1 - p) * w.astype(p.dtype)[:, None]
            yield np.column_stack([x, np.ones(len(x), dtype=x.dtype)]), v

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

    def _few_blocks(self, rows: Sample, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        return _core.matrix_blocks(rows.logits, self._centres_of(rows), rows.weights, *self._few_arguments(theta))

    def _few_sums(self, rows: Sample, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        args = (self._centres_of(rows), rows.labels, rows.weights, *self._few_arguments(theta))
        loss, sums = _core.matrix_sums(rows.logits, *args)
        return loss, np.concatenate([sums[:-1].T.ravel(), sums[-1]])

    def _few_arguments(self, theta: NDArray[np.float64]) -> tuple[Any, ...]:
        weights, intercept = self.split(theta)
        f = self.frame
        mean, scale = (0.0, 0.0) if f.confidence is None else (f.confidence[0], 1.0 / f.confidence[1])
        turned = np.ascontiguousarray(weights.T)
        return f.beta, f.floor, f.centred, mean, scale, turned, np.ascontiguousarray(intercept), get_threads()

    def _features(
        self, rows: Sample, centres: NDArray[np.float64], part: NDArray[np.int64] | slice
    ) -> NDArray[np.floating]:
        if self.kept is not None and rows is self.sample:
            return self.kept[part]
        return self.frame.features(rows.logits[part], centres)

    def _diagonal_sums(self, rows: Sample, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        loss, sums = self._vector_sums(rows, theta, False)
        return loss, sums[:2].ravel()

    def _vector_sums(
        self, rows: Sample, theta: NDArray[np.float64], curvature: bool
    ) -> tuple[float, NDArray[np.float64]]:
        d, b = (np.ascontiguousarray(part) for part in self.split(theta))
        f = self.frame
        args = (f.beta, f.floor, f.centred, d, b, curvature, get_threads())
        return _core.vector_sums(rows.logits, self._centres_of(rows), rows.labels, rows.weights, *args)

    def _full_sums(self, rows: Sample, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights, intercept = self.split(theta)
        weights = weights.T.astype(rows.logits.dtype)
        centres = self._centres_of(rows)
        loss, gradient = 0.0, np.zeros(self.size)
        for part in _parts(rows, self.k):
            z, c, y = rows.logits[part], centres[part], rows.labels[part]
            w = None if rows.weights is None else rows.weights[part]
            x = self._features(rows, c, part)
            r = x @ weights
            losses = _core.softmax_residual(r, z, c, y, w, self.frame.beta, intercept, get_threads())
            loss += float(losses.sum() if w is None else losses @ w)
            self._add(gradient, r, x)
        return loss, gradient

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
