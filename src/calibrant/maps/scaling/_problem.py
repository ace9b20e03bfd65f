"""The linear scaling maps as one problem: softmax(u + D x + b) around temperature scaling, and its passes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ... import _core
from ...fits.problem import Curvature, Sums
from ...passes import Block, Data
from ...passes.folds import row_keys
from ...threads import get_threads, one_blas_thread
from ...types import Array, Floats
from . import _products
from ._curvature import Blocks
from ._frame import Frame, feature_sums
from ._linear_stack import Linear, LinearStack
from ._shared import Shared, gram_directions, moment_directions

_FEW = 32  # classes up to which a full D has an exact block of curvature for each class
_FUSED = 256  # classes up to which the fused passes of a full D are faster than a BLAS
_TELLING = 16  # rows for each feature that tell in which directions rows spread
_PILOT = 2000  # rows at least that do: so many are drawn to judge a fit anyway


def small_products(k: int) -> contextlib.AbstractContextManager[object]:
    """Return a context for fits whose products by a BLAS are all of small matrices, where its threads only hinder."""
    return one_blas_thread() if k <= _FUSED else contextlib.nullcontext()


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """Rows, their frame and the shape of D: diagonal or full.

    The parameters are one flat vector, class by class: its row of D (its slope, for a diagonal D), then its intercept.
    Those of a full D speak about the features less their means over the rows (``shift``), so that an intercept is what
    a class gets at an average row, whatever its weights: the two are then nearly independent. A slope alone speaks
    about its class where that is likely, which an average row is not. `plain` is the map that the parameters make.
    """

    data: Data
    frame: Frame
    full: bool
    shift: Array

    @classmethod
    def of(cls, data: Data, frame: Frame, full: bool, *, at_average: bool = True) -> LinearProblem:
        """Return the problem of these rows; ``at_average=False``: with parameters of a full D that are plain."""
        shift = np.zeros(frame.columns(data.n_classes))
        if full and at_average:
            shift[: data.n_classes] = data.reduce(partial(feature_sums, frame=frame)) / data.total_weight
        return cls(data, frame, full, shift)

    def on(self, data: Data) -> LinearProblem:
        """Return the same problem on other rows: what its parameters mean stays."""
        return replace(self, data=data)

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.data.n_classes

    @property
    def side(self) -> int:
        """Parameters of a class."""
        return (self.frame.columns(self.k) if self.full else 1) + 1

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.side * self.k

    @property
    def sharp(self) -> bool:
        """Whether the curvature is so good that a sharp optimum costs few passes: that of a full D of few classes."""
        return self.full and self.k <= _FEW

    def plain(self, theta: Array) -> tuple[Array, Array]:
        """Return D (its diagonal, where it has no more) and b, for features that are not shifted."""
        rows = theta.reshape(self.k, self.side)
        if self.full:
            return rows[:, :-1].copy(), rows[:, -1] - rows[:, :-1] @ self.shift
        return rows[:, 0].copy(), rows[:, 1] - rows[:, 0] * self.shift

    def answer(self, theta: Array) -> Callable[[Floats], Floats]:
        """Return the map that the parameters make, from logits to probabilities."""
        weights, intercept = self.plain(theta)
        return LinearStack([Linear(self.frame, weights, intercept)])

    def sums(self, theta: Array) -> Sums:
        """One pass: the weighted sums of the loss and its gradient."""
        if self.full:
            loss, gradient = self.data.reduce(partial(matrix_sums, frame=self.frame, stacked=self._stacked(theta)))
        else:
            loss, gradient = self.data.reduce(partial(vector_sums, frame=self.frame, plain=self.plain(theta)))
        return self._by_class(loss, gradient)

    def curvature(self, theta: Array) -> tuple[Sums, Curvature]:
        """Return the sums and exact blocks of the classes or, for a full D of many classes, shared directions."""
        if not self.full:
            one_pass = partial(vector_curvature, frame=self.frame, plain=self.plain(theta))
            loss, gradient, (dd, db, bb) = self.data.reduce(one_pass)
            blocks = np.stack([dd, db, db, bb], axis=1).reshape(self.k, 2, 2)
            return self._by_class(loss, gradient), Blocks(_shifted(blocks, self._shifts), self._eps)
        sums = self.sums(theta)
        if self.k <= _FEW:
            blocks = self.data.reduce(partial(matrix_blocks, frame=self.frame, stacked=self._stacked(theta)))
            return sums, Blocks(_shifted(blocks, self._shifts), self._eps)
        directions = self._directions(theta)
        return sums, Shared(directions, *self.along(theta, directions), self._eps)

    def along(self, theta: Array, directions: Array) -> tuple[Array, Array]:
        """Return the curvature of each class along directions (side, r), and its block over what is its own.

        The one is (K, r); the other (K, e, e) over its slope, its weight of how sure a row is, and its intercept. It
        steers the solver only: with so many classes that a BLAS does it, rows enough to tell it stand for all.
        """
        some = self.data if self.k <= _FUSED else self._telling
        turned = np.vstack([directions[:-1], directions[-1] - self.shift @ directions[:-1]])
        one_pass = partial(matrix_along, frame=self.frame, stacked=self._stacked(theta), directions=turned)
        found = some.reduce(one_pass) * (self.data.total_weight / some.total_weight)
        order = [[0, 1], [1, 2]] if self.side == self.k + 1 else [[0, 3, 1], [3, 5, 4], [1, 4, 2]]
        own = found[:, directions.shape[1] :][:, order]
        away = np.zeros((self.k, own.shape[1] - 1))
        away[:, 0] = self.shift[: self.k]
        return found[:, : directions.shape[1]], _shifted(own, away)

    def moment(self, theta: Array) -> Array:
        """Return the sum of the blocks of all classes, (side, side), over rows enough to tell its directions."""
        one_pass = partial(matrix_moment, frame=self.frame, stacked=self._stacked(theta), shift=self.shift)
        return self._telling.reduce(one_pass)

    def spread(self, rows: Block, theta: Array) -> Array:
        """Return (x, 1) of each row times the root of w Σ p (1 - p): their `moment` is spreadᵀ spread."""
        z, c = rows.logits, self.frame.centres(rows)
        x = self.frame.features(z, c).astype(np.float64)
        weights, intercept = self.plain(theta)
        p = x @ weights.T
        _core.softmax_residual(p, z.astype(np.float64), c, None, None, self.frame.beta, intercept, get_threads())
        variance = rows.weight_array * (1.0 - (p * p).sum(axis=1))
        return np.column_stack([x - self.shift, np.ones(len(x))]) * np.sqrt(np.maximum(variance, 0.0))[:, None]

    def _directions(self, theta: Array) -> Array:
        """Return the directions in which rows spread; where fewer rows than features differ, from their products."""
        telling = self._telling
        if _fewer_distinct(telling.rows(), self.side):
            return gram_directions(self.spread(telling.pilot(self.side).rows(), theta))
        return moment_directions(self.moment(theta))

    def _by_class(self, loss: float, gradient: Array) -> Sums:
        """Turn the gradient in the plain map, (side, K), into that in the parameters."""
        by_class = gradient.T.copy()
        by_class[:, :-1] -= by_class[:, -1:] * self._shifts
        return Sums(float(loss), by_class.ravel())

    @property
    def _telling(self) -> Data:
        return self.data.pilot(max(_PILOT, _TELLING * self.side))

    @property
    def _eps(self) -> float:
        return float(np.finfo(self.data.dtype).eps)

    @property
    def _shifts(self) -> Array:
        """What each parameter of a class but the intercept speaks about, less this."""
        return self.shift if self.full else self.shift[:, None]

    def _stacked(self, theta: Array) -> Array:
        """Return the plain D transposed with b below it, as the passes want it."""
        weights, intercept = self.plain(theta)
        return np.vstack([weights.T, intercept])


def _fewer_distinct(rows: Block, count: int) -> bool:
    """Whether fewer than so many rows differ; two columns often tell that more do."""
    apart = len(np.unique(rows.logits[:, 0] - rows.logits[:, 1]))
    return apart < count and len(np.unique(rows.kept(row_keys))) < count


def vector_sums(block: Block, frame: Frame, plain: tuple[Array, Array]) -> tuple[float, Array]:
    """One pass, diagonal D: the loss and its gradient in slopes and intercepts, (2, K)."""
    loss, sums = _vector_pass(block, frame, plain, False)
    return loss, sums[:2]


def vector_curvature(block: Block, frame: Frame, plain: tuple[Array, Array]) -> tuple[float, Array, Array]:
    """One pass, diagonal D: the same, and second derivatives of each class in slope, both and intercept, (3, K)."""
    loss, sums = _vector_pass(block, frame, plain, True)
    return loss, sums[:2], sums[2:]


def _vector_pass(block: Block, frame: Frame, plain: tuple[Array, Array], curvature: bool) -> tuple[float, Array]:
    args = (frame.beta, frame.floor, frame.centred, *plain, curvature, get_threads())
    return _core.vector_sums(block.logits, frame.centres(block), block.labels, block.weights, *args)


def matrix_sums(block: Block, frame: Frame, stacked: Array) -> tuple[float, Array]:
    """One pass, full D: the loss and its gradient in the plain map, (side, K)."""
    if block.n_classes > _FUSED:
        return _products.matrix_sums(block, frame, stacked)
    args = (*frame.arguments(), stacked, get_threads())
    return _core.matrix_sums(block.logits, frame.centres(block), block.labels, block.weights, *args)


def matrix_blocks(block: Block, frame: Frame, stacked: Array) -> Array:
    """One pass, full D of few classes: the block of the Hessian of each class in the plain map."""
    args = (*frame.arguments(), stacked, get_threads())
    return _core.matrix_blocks(block.logits, frame.centres(block), block.weights, *args)


def matrix_moment(block: Block, frame: Frame, stacked: Array, shift: Array) -> Array:
    """One pass, full D: Σ w (1 - Σ p²) x xᵀ, x less a shift and with a one at its end."""
    if block.n_classes > _FUSED:
        return _products.matrix_moment(block, frame, stacked, shift)
    args = (*frame.arguments(), stacked, shift, get_threads())
    return _core.matrix_moment(block.logits, frame.centres(block), block.weights, *args)


def matrix_along(block: Block, frame: Frame, stacked: Array, directions: Array) -> Array:
    """One pass, full D: of each class Σ w p (1 - p) times the squares along directions, and times what is its own."""
    if block.n_classes > _FUSED:
        return _products.matrix_along(block, frame, stacked, directions)
    args = (*frame.arguments(), stacked, directions, get_threads())
    return _core.matrix_along(block.logits, frame.centres(block), block.weights, *args)


def _shifted(blocks: Array, shift: Array) -> Array:
    """Turn Σ v x xᵀ, x with a one at its end, into the same for x - shift."""
    blocks = blocks.copy()
    blocks[..., :-1, :] -= shift[..., :, None] * blocks[..., -1:, :]
    blocks[..., :, :-1] -= blocks[..., :, -1:] * shift[..., None, :]
    return blocks
