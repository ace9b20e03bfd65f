"""Bounds on sums that hold at all times at once, and the closed-form e-process."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc, gammaln

from ..types import Array

TIGHTEST = 250.0  # the variance (about rows × p(1-p)) where bounds are tightest: a thousand rows of even odds


def mixing(alpha: float, tightest: float = TIGHTEST) -> float:
    """Return ρ of a mixture boundary that is tightest where the variance is ``tightest`` (Howard et al. 2021, §3.5)."""
    log = np.log(1 / alpha)
    return tightest / (2 * log + np.log1p(2 * log))


def gap_bound(squares: float, alpha: float) -> float:
    """Return u such that |Σ(y - p) - Σ(q - p)| ≤ u at all times with probability 1 - α, whatever the true q are.

    ``squares`` is Σ(y - p)². Since y - p ≥ -1, exp(λ(y - p) - ψ(λ)(y - p)²) ≤ 1 + λ(y - p) with ψ(λ) = -log(1-λ) - λ
    (Fan et al. 2015), so Σ(y - q) is sub-exponential with the observed squares as its clock: no model of the drift is
    needed, and rare events have narrow bounds. u is the gamma-exponential mixture's (Howard et al. 2021, Prop. 9).
    """
    rho, level = mixing(alpha / 2), np.log(2 / alpha)
    top = 10.0 + level + squares  # log m grows at least like s - v·log(1 + s/v)
    while _log_mixture(top, squares, rho) < level:
        top *= 2
    root: Any = brentq(lambda s: _log_mixture(s, squares, rho) - level, 0.0, top, xtol=1e-10)
    return float(root)


def _log_mixture(s: float, v: float, rho: float) -> float:
    whole, end = v + rho, s + v + rho
    start = rho * np.log(rho) - gammaln(rho) - np.log(gammainc(rho, rho))
    return float(start + gammaln(whole) + np.log(gammainc(whole, end)) - whole * np.log(end) + s + v)


def offset_ends(offsets: Array, log_ratios: Array, alpha: float) -> tuple[float, float]:
    """Return the ends of the confidence sequence for one offset of the log-odds that has held all along.

    That the forecasts moved by δ are true is betted against with all offsets at equal stakes, E(δ) = mean_j L_j/L_δ;
    an offset with E(δ) ≥ 1/α is out, and with probability 1 - α the true one never is, at any time (Ville). log L is
    concave in δ and known at the offsets and at 0 only: between them the chords of the neighbours, drawn on, lie above
    it, so the sequence is never too narrow. An end is infinite where nothing bounds it yet.
    """
    order = np.argsort(np.r_[offsets, 0.0])
    at, logs = np.r_[offsets, 0.0][order], np.r_[log_ratios, 0.0][order]
    least = float(np.logaddexp.reduce(log_ratios)) - np.log(len(log_ratios) / alpha)
    return _lowest(at, logs, least), -_lowest(-at[::-1], logs[::-1], least)


def _lowest(at: Array, logs: Array, least: float) -> float:
    """Return where a concave function, known at some places, can first rise above ``least``."""
    first = int(np.argmax(logs > least))  # there is one: the mean is not above the largest
    with np.errstate(all="ignore"):  # places of a state from elsewhere may be equal, or its logarithms enormous
        slopes = np.diff(logs) / np.diff(at)
    lines = [(first, first)] if first < len(slopes) else []  # a place, and the chord that is drawn on to it
    lines += [(first - 1, first - 2)] if first >= 2 else []
    ends = [float(at[i] + (least - logs[i]) / slopes[j]) for i, j in lines if 0 < slopes[j] < np.inf]
    return max(ends, default=-np.inf) if first == 0 else max([*ends, float(at[first - 1])])


def sub_gaussian_variance(p: Array) -> Array:
    """Return v(p) = (1-2p)/(2 log((1-p)/p)), the smallest v with E exp(λ(y-p)) ≤ exp(λ²v/2) (Kearns & Saul 1998).

    ¼ at ½, 0 at 0 and 1. p(1-p) in its place is not proved.
    """
    p = np.asarray(p, dtype=np.float64)
    inside = (p > 0) & (p < 1)
    safe = np.where(inside, p, 0.25)
    x = np.log1p(-safe) - np.log(safe)
    near = np.abs(x) < 1e-4  # tanh(x/2)/(2x) = ¼ - x²/48 …
    v = np.where(near, 0.25 - x**2 / 48, np.tanh(x / 2) / (2 * np.where(near, 1.0, x)))
    return np.where(inside, v, 0.0)


def closed_form_log_e(gap: float, variance: float, rho: float) -> float:
    """Return log E of the normal mixture over all offsets: S²/(2(V+ρ)) - ½ log((V+ρ)/ρ), with V = Σ v(p)."""
    return float(gap**2 / (2 * (variance + rho)) - 0.5 * np.log((variance + rho) / rho))
