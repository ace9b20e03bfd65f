"""How linear maps answer: one or several side by side, in one sweep over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ... import _core
from ...arrays import panels_of
from ...calibrator import Calibrator
from ...formulas import Term
from ...made import made_once
from ...threads import get_threads
from ...types import Array, Floats
from ._frame import Frame


class Linear(NamedTuple):
    """softmax(u + D x + b), u and x by the frame; one-dimensional ``weights`` are the diagonal of D."""

    frame: Frame
    weights: Array
    intercept: Array


class LinearStack:
    """Σ shareᵢ softmax(u + Dᵢ xᵢ + bᵢ), D and b put together once for each precision."""

    def __init__(self, maps: Sequence[Linear], shares: Sequence[float] = (1.0,)) -> None:
        self._maps = maps
        self._columns = np.array([1 if one.weights.ndim == 1 else one.weights.shape[1] for one in maps])
        self._frames = np.array([[*one.frame.arguments(), share] for one, share in zip(maps, shares, strict=True)])
        self._tables: dict[np.dtype, tuple[Floats, Floats]] = {}

    def __call__(self, logits: Floats) -> Floats:
        """Return the mixture's probabilities."""
        total = np.zeros(logits.shape, dtype=logits.dtype)
        self.add_to(total, logits)
        return total

    def add_to(self, total: Floats, logits: Floats) -> None:
        """Add the mixture's probabilities to ``total``, which is C-ordered."""
        weights, intercepts = self._tables.get(logits.dtype) or self._cast(logits.dtype)
        args = (self._frames, self._columns, weights, intercepts, get_threads(), total)
        _core.add_linear_mixture(np.ascontiguousarray(logits), *args)

    def _cast(self, dtype: np.dtype) -> tuple[Floats, Floats]:
        """Return the weights as the kernel wants them, in one row, and the intercepts."""
        matrices = [one.weights for one in self._maps]
        tables = [w.astype(dtype) if w.ndim == 1 else panels_of(w, dtype) for w in matrices]
        intercepts = np.array([one.intercept for one in self._maps])
        self._tables[dtype] = np.concatenate(tables), intercepts.astype(dtype)
        return self._tables[dtype]


class LinearMap(Calibrator):
    """A calibrator that answers softmax(u + D x + b)."""

    weights_: Array
    intercept_: Array

    @property
    def frame(self) -> Frame:
        """How logits become features."""
        raise NotImplementedError

    @property
    def linear(self) -> Linear:
        """The frame, D and b."""
        return Linear(self.frame, self.weights_, self.intercept_)

    def _map(self, logits: Floats) -> Floats:
        linear = self.linear
        made_of = (linear.weights, linear.intercept)
        return made_once(self, made_of, lambda: LinearStack([linear]), linear.frame)(logits)

    def _formula(self, z: Term) -> Term:
        return self.frame.formula(z, self.weights_, self.intercept_)
