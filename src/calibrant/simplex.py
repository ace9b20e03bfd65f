"""Small convex problems on the simplex: mixture weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from . import _core
from .threads import get_threads

__all__ = ["best_log_mixture", "best_quadratic", "likely_best", "log_mixture"]

Array = NDArray[np.float64]
_DRAWS = 1000
_HARDLY = 0.05  # a share below it is not worth another map


def best_quadratic(gram: Array, linear: Array) -> Array:
    """Minimise ½ w'Gw - c'w over the simplex exactly, face by face, the largest first (few weights only)."""
    return _core.best_quadratic(np.ascontiguousarray(gram), np.ascontiguousarray(linear))


def best_log_mixture(columns: Array, weights: Array | None, start: Array | None = None, most: int = 100) -> Array:
    """Minimise -Σ ωᵢ log(Σⱼ wⱼ cᵢⱼ) over the simplex: Newton's quadratic model solved exactly, with a line search.

    The problem is convex, so the answer is global. ``columns`` holds each part's probability of the label.
    """
    columns, parts = np.ascontiguousarray(columns), columns.shape[1]
    w = np.full(parts, 1.0 / parts) if start is None else start
    return _core.best_mixture(columns, weights, w, most, get_threads())


def log_mixture(columns: Array, weights: Array | None, w: Array) -> tuple[float, Array, Array]:
    """Return the loss that `best_log_mixture` minimises, its gradient and its Hessian in w."""
    m = len(w)
    sums = _core.mixture_sums(columns, weights, w, get_threads())
    return float(sums[0]), sums[1 : 1 + m], sums[1 + m :].reshape(m, m)


def likely_best(losses: Array, costs: Array, weights: Array) -> Array:
    """Return the share that each of several maps deserves: the probability that it does best on other rows.

    Pseudo-BMA+ (Yao et al. 2018, §3.4) with a normal distribution in place of the bootstrap: the log-losses expected on
    as many other rows are Σ w l + c, their uncertainty is the covariance of the rows' losses, and a share is the mean
    of softmax(-loss) under it. A share below a twentieth is dropped.

    Parameters
    ----------
    losses : array of shape (maps, n)
        Log-losses of the rows that the maps were fitted on.
    costs : array of shape (maps,)
        What each map's parameters add on other rows, in nats.
    weights : array of shape (n,)
    """
    apart = losses - losses.mean(axis=0)
    centred = apart - np.average(apart, axis=1, weights=weights)[:, None]
    values, vectors = np.linalg.eigh((centred * weights) @ centred.T)
    root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    half = np.random.default_rng(0).standard_normal((_DRAWS // 2, len(losses))) @ root
    expected = apart @ weights + costs + np.vstack([half, -half])
    shares = softmax(-expected, axis=1).mean(axis=0)
    shares[shares < min(_HARDLY, shares.max())] = 0.0
    return shares / shares.sum()
