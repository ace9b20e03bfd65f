"""The smooth estimator smECE: no bins, and a bandwidth that the data choose."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.fft import dct, idct
from scipy.optimize import brentq

from ...cells.pairs import Pairs
from ...errors import InvalidInput
from ...parameters import AnyOf, Number, OneOf, is_one_of
from ...types import Array
from .norms import Norm, check_norm

_PLACES = 8192
_WIDEST = 1e3  # a wider kernel is as flat: exp(-½ (π · 1000)²) is zero
_RELPLOTS_LEAST = 1e-4  # a width that takes 100,000 places; relplot itself tries none below 0.001
_WIDTH = AnyOf(OneOf(None), Number(0.0, np.inf, open_low=True))


def smooth(pairs: Pairs, *, norm: Norm = 1, width: Any = None, grid: str = "fine") -> float:
    """Smooth calibration error (Błasiok and Nakkiran 2023).

    smECE_σ = ∫ |1/n Σ_i (y_i - p_i) K_σ(p_i, t)| dt with the Gaussian kernel K_σ of width σ reflected at 0 and 1,
    and smECE the σ at which smECE_σ = σ.

    Parameters
    ----------
    width : number, optional
        A fixed σ instead of the fixed point.
    grid : {"fine", "relplot"}
        "fine" is the integral to six digits; "relplot" has the digits of the authors' package relplot, to compare.

    Notes
    -----
    The reflected Gaussian is the heat kernel of [0, 1], diagonal in cosines: one cosine transform of the residuals on
    8,192 places, then a product and an inverse transform for each σ.

    relplot reflects a grid of 1,001 places whose first and last count once, not with both of their images, so that the
    mass there, by which it divides, is too small: where three scores of four lie within 0.001 of 0 or 1 its answer is
    0.0426 and the integral 0.0289. Elsewhere it differs by less than 0.001, as σ is found to 1/1024 and the mean over
    its 200 places counts both ends whole.
    """
    check_norm(norm, (1,))
    if not _WIDTH.accepts(width):
        raise InvalidInput("width is not valid", seen=repr(width), allowed=_WIDTH.allowed)
    if not is_one_of(grid, ("fine", "relplot")):
        raise InvalidInput("no such grid", seen=repr(grid), allowed="'fine', 'relplot'")
    if grid == "relplot":
        if width is not None and width < _RELPLOTS_LEAST:
            raise InvalidInput(
                "width is too small for relplot's grid, which has 10 / width places",
                seen=repr(width),
                allowed=f"{_RELPLOTS_LEAST} or more; any with grid='fine'",
            )
        return _on_relplots_grid(pairs, _relplots_width(pairs) if width is None else float(width))
    spectrum = _spectrum(pairs)
    return _smoothed(spectrum, float(width)) if width is not None else _fixed_point(spectrum)


def _fixed_point(spectrum: Array) -> float:
    """Return smECE: the width σ with smECE_σ = σ."""
    # smECE_σ falls with σ towards the overall gap, so the fixed point lies between that and the value there.
    low = abs(float(spectrum[0])) * np.sqrt(_PLACES)
    high = _smoothed(spectrum, low)
    if high <= low + 1e-12 or _smoothed(spectrum, high) >= high:  # equal but for rounding: high is the fixed point
        return high
    root: Any = brentq(lambda width: _smoothed(spectrum, width) - width, low, high, xtol=1e-10)
    return float(root)


def _spectrum(pairs: Pairs) -> Array:
    """Cosine coefficients of the residuals' measure, shared linearly between neighbouring places."""
    residual = (pairs.outcomes - pairs.scores) * pairs.weight_array / pairs.total
    position = np.clip(pairs.scores * _PLACES - 0.5, 0, _PLACES - 1)
    low = np.minimum(position.astype(np.int64), _PLACES - 2)
    part = position - low
    mass = np.bincount(low, residual * (1 - part), _PLACES) + np.bincount(low + 1, residual * part, _PLACES)
    return np.asarray(dct(mass, norm="ortho"))


def _smoothed(spectrum: Array, width: float) -> float:
    """Sum of |values| after damping the cosines; those damped below 1e-17 are zero already."""
    kept = _PLACES if width <= 0 else int(min(_PLACES, 9 / (np.pi * width) + 2))
    damped = np.zeros(_PLACES)
    damped[:kept] = spectrum[:kept] * np.exp(-0.5 * (np.pi * min(width, _WIDEST) * np.arange(kept)) ** 2)
    return float(np.abs(np.asarray(idct(damped, norm="ortho", overwrite_x=True))).sum())


def _relplots_width(pairs: Pairs) -> float:
    """Return the upper end of relplot's ten halvings of [0, 1] about σ = smECE_σ, in which σ < 0.001 is too small."""
    low, high = 0.0, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        too_small = middle < 1e-3 or middle < _on_relplots_grid(pairs, middle)
        low, high = (middle, high) if too_small else (low, middle)
    return high


def _on_relplots_grid(pairs: Pairs, width: float) -> float:
    """Return smECE_σ as relplot 1.0 sums it: |residuals| over mass, both smoothed on a grid and read at a mesh."""
    places = max(2000, round(20 / width)) // 2 + 1
    grid, mesh = np.linspace(0, 1, places), np.linspace(0, 1, max(200, round(10 / width)))
    kernel = np.exp(-0.5 * ((grid - 0.5) / width) ** 2) / (np.sqrt(2 * np.pi) * width)
    low = np.minimum((pairs.scores * (places - 1)).astype(np.int64), places - 2)
    part = pairs.scores * (places - 1) - low

    def smoothed(values: Array) -> Array:
        mass = np.bincount(low, values * (1 - part), places) + np.bincount(low + 1, values * part, places)
        mirrored = np.concatenate([mass[:0:-1], mass, mass[-2::-1]])
        return np.interp(mesh, grid, np.convolve(mirrored, kernel, "valid")[places // 2 : places // 2 + places])

    residuals = smoothed((pairs.outcomes - pairs.scores) * pairs.weight_array)
    return float(np.abs(residuals).sum() / (smoothed(pairs.weight_array) + 1e-4).sum())  # 1e-4: relplot's own
