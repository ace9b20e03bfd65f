"""The smooth estimator smECE: no bins, and a bandwidth that the data choose."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.fft import dct, idct
from scipy.optimize import brentq

from ...cells.pairs import Pairs
from ...errors import InvalidInput
from ...parameters import AnyOf, Number, OneOf
from ...types import Array
from .norms import Norm, check_norm

__all__ = ["smooth"]

_PLACES = 8192
_WIDTH = AnyOf(OneOf(None), Number(0.0, np.inf, open_low=True))


def smooth(pairs: Pairs, *, norm: Norm = 1, width: Any = None) -> float:
    """Smooth calibration error (Błasiok and Nakkiran 2023).

    smECE_σ = ∫ |1/n Σ_i (y_i - p_i) K_σ(p_i, t)| dt with the Gaussian kernel K_σ of width σ reflected at 0 and 1,
    and smECE the σ at which smECE_σ = σ.

    Parameters
    ----------
    width : number, optional
        A fixed σ instead of the fixed point.

    Notes
    -----
    The reflected Gaussian is the heat kernel of [0, 1], diagonal in cosines: one cosine transform of the residuals on
    8,192 places, then a product and an inverse transform for each σ. relplot searches σ in steps of 0.001 on a grid
    of 200 places, so its answers differ in the third digit.
    """
    check_norm(norm, (1,))
    if not _WIDTH.accepts(width):
        raise InvalidInput("width is not valid", seen=repr(width), allowed=_WIDTH.allowed)
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
    kept = _PLACES if width <= 0 else min(_PLACES, int(9 / (np.pi * width)) + 2)
    damped = np.zeros(_PLACES)
    damped[:kept] = spectrum[:kept] * np.exp(-0.5 * (np.pi * width * np.arange(kept)) ** 2)
    return float(np.abs(np.asarray(idct(damped, norm="ortho", overwrite_x=True))).sum())
