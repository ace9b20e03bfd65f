"""The least point of quadratics within bounds: the step of a Newton method, for many small problems at once."""

from __future__ import annotations

import numpy as np

from ...types import Array, Integers, Mask

_FLATTEST = 1e-13  # curvature below this part of the largest is rounding
_PATIENCE = 3  # exchanges of all wrong unknowns that may bring nothing (Júdice & Pires 1994 take as many)
_SLACK = 1e-12  # rounding, of the quantities at hand


def quadratic_step(hessian: Array, gradient: Array, low: Array, high: Array, length: Array) -> Array:
    """Minimise g·s + ½ sᵀ|H|s over low ≤ s ≤ high, for G problems of d unknowns.

    |H| is H with its eigenvalues made positive, and none less than 1e-13 of the largest, once each unknown is measured
    in units of its own curvature: so every step descends, whatever H is. A problem whose H is zero or not finite has
    nothing to measure by; its unknowns then move by ``length`` each, down their slope.

    Parameters
    ----------
    hessian : array of shape (G, d, d)
    gradient, low, high, length : arrays of shape (G, d)
        With low ≤ 0 ≤ high.

    Returns
    -------
    step : array of shape (G, d)
        Not finite where the gradient is not.
    """
    with np.errstate(all="ignore"):
        if gradient.shape[1] == 1:
            return np.clip(_step_on_a_line(hessian[:, :, 0], gradient, length), low, high)
        positive, scale = _positive(hessian, gradient, length)
        slope, bottom, top = gradient / scale, low * scale, high * scale
        step = -_solve(positive, slope)
        outside = np.flatnonzero(((step < bottom) | (step > top)).any(axis=1))
        if len(outside):
            step[outside] = _bounded(*(part[outside] for part in (positive, slope, bottom, top, step)))
        inside = np.clip(step / scale, low, high)
        return np.where(step <= bottom, low, np.where(step >= top, high, inside))


def _step_on_a_line(curvature: Array, gradient: Array, length: Array) -> Array:
    curved = np.abs(curvature)
    known = (curved > 0) & np.isfinite(curved)
    return np.where(known, -gradient / np.where(known, curved, 1.0), -np.sign(gradient) * length)


def _positive(hessian: Array, gradient: Array, length: Array) -> tuple[Array, Array]:
    """Return |H| in units of each unknown's own curvature, and these units."""
    d = gradient.shape[1]
    diagonal = np.abs(np.einsum("gii->gi", hessian))
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    unit = hessian / scale[:, :, None] / scale[:, None, :]
    lost = ~np.isfinite(unit).all(axis=(1, 2)) | ~unit.any(axis=(1, 2))
    if lost.any():
        scale[lost] = np.sqrt(np.where(gradient[lost] != 0, np.abs(gradient[lost]), 1.0) / length[lost])
        scale[lost] = np.where(np.isfinite(scale[lost]), scale[lost], 1.0)
        unit[lost] = np.eye(d)
    if _all_definite(unit):
        return unit, scale
    values, vectors = np.linalg.eigh(unit)
    values = np.abs(values)
    values = np.maximum(values, _FLATTEST * values.max(axis=1, keepdims=True))
    return (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1), scale


def _all_definite(matrices: Array) -> bool:
    """Whether all are positive definite, and not by rounding alone."""
    try:
        factors = np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return False
    return bool((np.einsum("gii->gi", factors) ** 2 > _FLATTEST).all())


def _solve(matrices: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(matrices, right[:, :, None])[:, :, 0], dtype=np.float64)


def _bounded(matrix: Array, slope: Array, low: Array, high: Array, step: Array) -> Array:
    """Find which unknowns lie on a bound by exchanging the wrong ones (block principal pivoting).

    All of them at a time, as long as they become fewer; else the last of them only, which ends after finitely many
    exchanges (Murty 1974). Should it not end in the time given, each unknown moves as if it were alone.
    """
    d = slope.shape[1]
    side = np.sign(step - np.clip(step, low, high)).astype(np.int64)  # -1 on the lower bound, 1 on the upper, 0 free
    fewest, patience = np.full(len(slope), d + 1), np.full(len(slope), _PATIENCE)
    count = np.zeros(len(slope), dtype=np.int64)
    for _ in range(5 * d + 10):
        step, pull = _with_sides(matrix, slope, low, high, side)
        wrong, target = _wrong(step, pull, low, high, side, np.abs(slope).max(axis=1, keepdims=True))
        count = wrong.sum(axis=1)
        if not count.any():
            return step
        fewer = count < fewest
        fewest, patience = np.where(fewer, count, fewest), np.where(fewer, _PATIENCE, patience - 1)
        last = d - 1 - np.argmax(wrong[:, ::-1], axis=1)
        single = np.arange(d) == last[:, None]
        exchanged = wrong & ((patience >= 0)[:, None] | single)
        side = np.where(exchanged, target, side)
    alone = np.clip(-slope / np.abs(matrix).sum(axis=2), low, high)
    return np.where((count > 0)[:, None], alone, step)


def _with_sides(matrix: Array, slope: Array, low: Array, high: Array, side: Integers) -> tuple[Array, Array]:
    """Return the least point with some unknowns on their bounds, and the slope there."""
    fixed = np.where(side < 0, low, np.where(side > 0, high, 0.0))
    free = side == 0
    right = np.where(free, -slope - (matrix @ fixed[:, :, None])[:, :, 0], fixed)
    both = free[:, :, None] & free[:, None, :]
    step = _solve(np.where(both, matrix, np.eye(slope.shape[1])), right)
    return step, slope + (matrix @ step[:, :, None])[:, :, 0]


def _wrong(step: Array, pull: Array, low: Array, high: Array, side: Integers, size: Array) -> tuple[Mask, Integers]:
    """Return which unknowns are outside their bounds, or on one that they want to leave; and where they belong."""
    free = side == 0
    below, above = free & (step < low * (1 + _SLACK)), free & (step > high * (1 + _SLACK))
    leaving = (side * pull) > _SLACK * size
    return below | above | leaving, above.astype(np.int64) - below.astype(np.int64)
