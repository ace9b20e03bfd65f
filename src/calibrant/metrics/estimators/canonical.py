"""Calibration error of the whole vector by Dirichlet kernels, for few classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from ...errors import InvalidInput
from ...parameters import AnyOf, Number, OneOf
from ...types import Array
from ..views.forecasts import Forecasts, read
from .norms import Norm, check_norm

_BLOCK = 1024
_CHOICES = np.geomspace(1e-4, 1.0, 17)
_MOST = 500
_BANDWIDTH = AnyOf(OneOf("likelihood"), Number(0.0, np.inf, open_low=True))
_TINY = 1e-30


def canonical_error(
    y_true: Any,
    y_prob: Any,
    *,
    norm: Norm = 1,
    bandwidth: Any = "likelihood",
    sample_weight: Any = None,
    classes: Any = None,
) -> float:
    """Canonical calibration error (1/n Σ_j ‖π̂(p_j) - p_j‖_q^q)^(1/q) (Popordanoska, Sayer and Blaschko 2022).

    π̂(p_j) is the mean of the other rows' labels, weighted by the Dirichlet density at p_j with parameters p_i/h + 1,
    which knows the borders of the simplex. The cost is n²·K, and the bias grows with K: meant for K up to about ten.

    Parameters
    ----------
    norm : {1, 2}
    bandwidth : "likelihood" or number
        h. The one of 17 values from 1e-4 to 1 with the largest leave-one-out likelihood (on at most 500 rows).
    """
    return canonical_of(read(y_true, y_prob, sample_weight, classes=classes), norm=norm, bandwidth=bandwidth)


def canonical_of(forecasts: Forecasts, *, norm: Norm = 1, bandwidth: Any = "likelihood") -> float:
    """Canonical calibration error of validated forecasts."""
    check_norm(norm, (1, 2))
    if not _BANDWIDTH.accepts(bandwidth):
        raise InvalidInput("bandwidth is not valid", seen=repr(bandwidth), allowed=_BANDWIDTH.allowed)
    p, w = forecasts.vectors(), np.ones(forecasts.n) if forecasts.weights is None else forecasts.weights
    p, labels, w = p[w > 0], forecasts.labels[w > 0], w[w > 0]
    if max(len(w), w.sum()) < 2:
        raise InvalidInput("the canonical error needs two rows", seen=f"{w.sum():g}")
    h = _best_bandwidth(p, w) if bandwidth == "likelihood" else float(bandwidth)
    hits, total = np.eye(p.shape[1])[labels], 0.0
    for start in range(0, len(p), _BLOCK):
        rows = slice(start, min(start + _BLOCK, len(p)))
        logs = _log_kernels(p, w, rows, h)
        kernels = np.exp(logs - logs.max(axis=1, keepdims=True))
        frequency = kernels @ hits / kernels.sum(axis=1, keepdims=True)
        total += float(w[rows] @ (np.abs(frequency - p[rows]) ** norm).sum(axis=1))
    mean = total / float(w.sum())
    return mean if norm == 1 else mean**0.5


def _log_kernels(p: Array, w: Array, rows: slice, h: float) -> Array:
    """Return log of w_i times the Dirichlet density of row i at row j; a row sees itself w_j - 1 times."""
    alpha = p / h + 1
    constant = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    logs = np.log(np.maximum(p[rows], _TINY)) @ (p / h).T + constant
    weights = np.broadcast_to(w, logs.shape).copy()
    here = np.arange(rows.start, rows.stop)
    weights[here - rows.start, here] = np.maximum(w[here] - 1, 0)
    with np.errstate(divide="ignore"):
        return logs + np.log(weights)


def _best_bandwidth(p: Array, w: Array) -> float:
    order = np.lexsort((w, *p.T))[:: max(1, -(-len(p) // _MOST))]
    q, v = p[order], w[order]
    if len(q) < 2:
        return float(_CHOICES[-1])
    likelihoods = [v @ np.asarray(logsumexp(_log_kernels(q, v, slice(0, len(q)), h), axis=1)) for h in _CHOICES]
    return float(_CHOICES[int(np.argmax(likelihoods))])
