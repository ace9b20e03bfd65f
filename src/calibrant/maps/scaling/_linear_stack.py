"""Several linear maps side by side, for few rows: one call answers what each would take several calls for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ._structured_part import StructuredPart

__all__ = ["LinearStack"]

Scores = NDArray[np.floating]
_FEW = 1_000_000  # weights times rows up to which one sweep takes less time than a BLAS, measured for 10 to 300 classes
_BLOCK = 65_536  # scores of a block of the core's, which one thread answers anyhow
_PANEL = 128  # bytes of a column of D that lie side by side: two cache lines, kPanel of cpp/linear_mixture.hpp


class LinearStack:
    """Σ shareᵢ softmax(u + Dᵢ xᵢ + bᵢ) of fitted parts, whose D and b are put together once for each precision."""

    def __init__(self, parts: Sequence[StructuredPart], shares: Sequence[float]) -> None:
        self.parts = parts
        self._weights = [part.weights_ for part in parts]
        self._size = sum(weights.size for weights in self._weights)
        self._columns = np.array([1 if weights.ndim == 1 else weights.shape[1] for weights in self._weights])
        frames = [part.frame.arguments() for part in parts]
        self._frames = np.array([[*frame, share] for frame, share in zip(frames, shares, strict=True)])
        self._tables: dict[np.dtype, tuple[Scores, Scores]] = {}

    def suits(self, logits: Scores) -> bool:
        """Tell whether the rows are few."""
        return len(logits) * self._size <= _FEW and logits.size <= _BLOCK

    def add_to(self, total: Scores, logits: Scores) -> None:
        """Add the mixture of rows to ``total``, which is C-ordered."""
        weights, intercepts = self._tables.get(logits.dtype) or self._cast(logits.dtype)
        _core.add_linear_mixture(np.ascontiguousarray(logits), self._frames, self._columns, weights, intercepts, total)

    def _cast(self, dtype: np.dtype) -> tuple[Scores, Scores]:
        """Return the weights as the kernel wants them, in one row, and the intercepts."""
        weights = np.concatenate([w if w.ndim == 1 else _panels(w, dtype) for w in self._weights])
        intercepts = np.array([part.intercept_ for part in self.parts])
        self._tables[dtype] = weights.astype(dtype), intercepts.astype(dtype)
        return self._tables[dtype]


def _panels(weights: NDArray[np.float64], dtype: np.dtype) -> NDArray[np.float64]:
    """Return D in panels of a few rows, the last filled up with zeros, each panel column by column."""
    rows, columns = weights.shape
    height = _PANEL // dtype.itemsize
    padded = np.zeros((-(-rows // height) * height, columns))
    padded[:rows] = weights
    return padded.reshape(-1, height, columns).swapaxes(1, 2).ravel()
