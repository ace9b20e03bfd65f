"""The linear scaling maps as one problem: softmax(u + D x + b) around temperature scaling, and its passes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...arrays import row_subsample
from ...passes import Block, reduce
from ...threads import get_threads, one_blas_thread
from . import _products
from ._frame import Frame

__all__ = ["Frame", "Problem", "Sums", "small_products"]

Array = NDArray[np.float64]
_FEW = 32  # classes up to which a full D has an exact block of curvature for each class
_FUSED = 256  # classes up to which the fused passes of a full D are faster than a BLAS
_BLOCK = 1 << 20  # scores worked on at a time
_TELLING = 16  # rows for each feature that tell in which directions rows spread


def small_products(k: int) -> contextlib.AbstractContextManager[object]:
    """Return a context for fits whose products by a BLAS are all of small matrices, where its threads only hinder."""
    return one_blas_thread() if k <= _FUSED else contextlib.nullcontext()


class Sums(NamedTuple):
    """Sums over rows: the log-loss, and its gradient in the parameters."""

    loss: float
    gradient: Array


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, their frame and the shape of D: diagonal or full.

    The parameters are one flat vector, class by class: its row of D (its slope, for a diagonal D), then its intercept.
    Those of a full D speak about the features less their means over the rows (``shift``), so that an intercept is what
    a class gets at an average row, whatever its weights: the two are then nearly independent. A slope alone speaks
    about its class where that is likely, which an average row is not. `plain` is the map that the parameters make.
    """

    sample: Block
    frame: Frame
    full: bool
    centres: Array
    shift: Array

    @classmethod
    def of(cls, sample: Block, frame: Frame, full: bool, *, at_average: bool = True) -> Problem:
        """Return the problem of these rows; ``at_average=False``: with parameters of a full D that are plain."""
        centres = frame.centres(sample.logits)
        shift = frame.means(sample, centres) if full and at_average else np.zeros(frame.columns(sample.n_classes))
        return cls(sample, frame, full, centres, shift)

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.sample.n_classes

    @property
    def few(self) -> bool:
        """Whether exact blocks of curvature are small: D is diagonal or has few classes."""
        return not self.full or self.k <= _FEW

    @property
    def side(self) -> int:
        """Parameters of a class."""
        return (self.frame.columns(self.k) if self.full else 1) + 1

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.side * self.k

    def without(self, rows: NDArray[np.int64]) -> Problem:
        """Return the problem without some rows: by weights of zero where a copy of the scores would be large."""
        if not self.full:
            weights = self.sample.weight_array.copy()
            weights[rows] = 0.0
            return replace(self, sample=replace(self.sample, weights=weights))
        rest = np.delete(np.arange(self.sample.n), rows)
        return replace(self, sample=self.sample.take(rest), centres=self.centres[rest])

    def plain(self, theta: Array) -> tuple[Array, Array]:
        """Return D (its diagonal, where it has no more) and b, for features that are not shifted."""
        rows = theta.reshape(self.k, self.side)
        if self.full:
            return rows[:, :-1].copy(), rows[:, -1] - rows[:, :-1] @ self.shift
        return rows[:, 0].copy(), rows[:, 1] - rows[:, 0] * self.shift

    def sums(self, theta: Array) -> Sums:
        """One pass: the weighted sums of the loss and its gradient."""
        loss, gradient = reduce(lambda rows: self._sums(rows, theta), self.sample)
        by_class = gradient.T.copy()
        by_class[:, :-1] -= by_class[:, -1:] * self._shifts
        return Sums(loss, by_class.ravel())

    def blocks(self, theta: Array) -> Array:
        """Return the block of the Hessian of each class: (K, side, side). For a diagonal D, or a full one of few."""
        if self.full:
            blocks = reduce(lambda rows: self._curvature("matrix_blocks", rows, theta), self.sample)
        else:
            dd, db, bb = reduce(lambda rows: self._vector_sums(rows, theta, True)[1], self.sample)[2:]
            blocks = np.stack([dd, db, db, bb], axis=1).reshape(self.k, 2, 2)
        return _shifted(blocks, self._shifts)

    def moment(self, theta: Array) -> Array:
        """Return the sum of the blocks of all classes, (side, side), over rows enough to tell its directions."""

        def one_pass(rows: Block) -> Array:
            return self._curvature("matrix_moment", rows.take(row_subsample(rows.n, _TELLING * self.side)), theta)

        return _shifted(reduce(one_pass, self.sample), self.shift)

    def along(self, theta: Array, directions: Array) -> tuple[Array, Array]:
        """Return the curvature of each class along directions (side, r), and its block over what is its own.

        The one is (K, r); the other (K, e, e) over its slope, its weight of how sure a row is, and its intercept.
        """
        turned = np.vstack([directions[:-1], directions[-1] - self.shift @ directions[:-1]])
        found = reduce(lambda rows: self._curvature("matrix_along", rows, theta, turned), self.sample)
        order = [[0, 1], [1, 2]] if self.side == self.k + 1 else [[0, 3, 1], [3, 5, 4], [1, 4, 2]]
        own = found[:, directions.shape[1] :][:, order]
        away = np.zeros((self.k, own.shape[1] - 1))
        away[:, 0] = self.shift[: self.k]
        return found[:, : directions.shape[1]], _shifted(own, away)

    def spread(self, theta: Array) -> Array:
        """Return (x, 1) of each row times the root of w Σ p (1 - p): `moment` is spreadᵀ spread. For few rows."""
        z, c = self.sample.logits, self.centres
        x = self.frame.features(z, c).astype(np.float64)
        weights, intercept = self.plain(theta)
        p = x @ weights.T
        _core.softmax_residual(p, z.astype(np.float64), c, None, None, self.frame.beta, intercept, get_threads())
        variance = self.sample.weight_array * (1.0 - (p * p).sum(axis=1))
        return np.column_stack([x - self.shift, np.ones(len(x))]) * np.sqrt(np.maximum(variance, 0.0))[:, None]

    def losses(self, theta: Array, rows: NDArray[np.int64]) -> Array:
        """Return the log-losses of some rows."""
        weights, intercept = self.plain(theta)
        z, y = self.sample.logits, self.sample.labels
        parts = np.array_split(rows, max(1, len(rows) * self.k // _BLOCK))
        return np.concatenate([self.frame.losses(z[part], y[part], weights, intercept) for part in parts])

    @property
    def _shifts(self) -> Array:
        """What each parameter of a class but the intercept speaks about, less this."""
        return self.shift if self.full else self.shift[:, None]

    def _centres_of(self, rows: Block) -> Array:
        return self.centres if rows is self.sample else self.frame.centres(rows.logits)

    def _sums(self, rows: Block, theta: Array) -> tuple[float, Array]:
        """Return the loss and its gradient in the plain map, (side, K)."""
        if not self.full:
            loss, sums = self._vector_sums(rows, theta, False)
            return loss, sums[:2]
        kernel = _core.matrix_sums if self.k <= _FUSED else _products.matrix_sums
        args = (rows.labels, rows.weights, *self.frame.arguments(), self._stacked(theta), get_threads())
        return kernel(rows.logits, self._centres_of(rows), *args)

    def _curvature(self, name: str, rows: Block, theta: Array, *more: Array) -> Any:
        kernel = getattr(_core if self.k <= _FUSED else _products, name)
        args = (rows.weights, *self.frame.arguments(), self._stacked(theta), *more, get_threads())
        return kernel(rows.logits, self._centres_of(rows), *args)

    def _stacked(self, theta: Array) -> Array:
        """Return the plain D transposed with b below it, as the passes want it."""
        weights, intercept = self.plain(theta)
        return np.vstack([weights.T, intercept])

    def _vector_sums(self, rows: Block, theta: Array, curvature: bool) -> tuple[float, Array]:
        f = self.frame
        args = (f.beta, f.floor, f.centred, *self.plain(theta), curvature, get_threads())
        return _core.vector_sums(rows.logits, self._centres_of(rows), rows.labels, rows.weights, *args)


def _shifted(blocks: Array, shift: Array) -> Array:
    """Turn Σ v x xᵀ, x with a one at its end, into the same for x - shift."""
    blocks = blocks.copy()
    blocks[..., :-1, :] -= shift[..., :, None] * blocks[..., -1:, :]
    blocks[..., :, :-1] -= blocks[..., :, -1:] * shift[..., None, :]
    return blocks
