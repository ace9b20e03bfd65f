"""Scenarios from real outputs: a beta distribution by maximum likelihood, a curve by Akaike's criterion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special
from scipy.optimize import minimize

from ..errors import InvalidInput
from ..metrics.views.forecasts import read
from ..types import Array
from ..validation import SIMPLEX_TOLERANCE, as_array, as_numbers
from ..validation.arrays import as_float
from .curves import GLM, inverse_links, transforms
from .distributions import TINY, Beta
from .scenario import Scenario

# The pairs of link and transform that paper 003 considers (Table 2).
FAMILIES = (("logit", "logit"), ("logit", "logflip"), ("logflip", "logflip"), ("log", "log"))
TERMS = ("b0", "b1", "b0_b1")


@dataclass(frozen=True)
class FittedCurve:
    """A curve with the name it has in the paper's Table 2, and its AIC."""

    name: str
    aic: float
    curve: GLM


def fit_beta(scores: Any, complements: Any = None) -> Beta:
    """Fit Beta(α, β) by maximum likelihood (paper 003, Eq. 8), with scores that were rounded to 0 or 1 as censored.

    A score of exactly 1 says that 1 - s is below half the step of its type there (2^-25 for float32, 2^-54 for
    float64); its likelihood is the probability of that, and alike at 0. ``complements`` give 1 - s where it is known.
    """
    array = as_float(as_array(scores, "scores")[0], "scores")
    rounding = 2.0**-25 if array.dtype == np.float32 else 2.0**-54
    s = as_numbers(array, "scores", 0, 1, ndim=1, least=2)
    if np.ptp(s) == 0:
        raise InvalidInput("scores are all equal: no beta distribution fits", seen=f"{s[0]!r}")
    t = 1.0 - s if complements is None else _complements(s, complements)
    inside = (s > 0) & (t > 0)
    shares = (float((s <= 0).mean()), float(inside.mean()), float((t <= 0).mean()))
    logs = (float(np.log(s[inside]).mean()), float(np.log(t[inside]).mean())) if inside.any() else (0.0, 0.0)
    return _solve_beta(shares, logs, rounding, s)


def _solve_beta(shares: tuple[float, float, float], logs: tuple[float, float], rounding: float, s: Array) -> Beta:
    mean, variance = s.mean(), max(s.var(), 1e-12)
    common = max(mean * (1 - mean) / variance - 1, 1e-2)
    start = np.log([max(mean * common, 1e-3), max((1 - mean) * common, 1e-3)])

    @np.errstate(over="ignore", invalid="ignore")  # of scores that are next to equal: the answer is refused
    def loss(v: Array) -> float:
        a, b = np.exp(v)
        at_zero = shares[0] * np.log(max(special.betainc(a, b, rounding), TINY)) if shares[0] else 0.0
        at_one = shares[2] * np.log(max(special.betainc(b, a, rounding), TINY)) if shares[2] else 0.0
        density = (a - 1) * logs[0] + (b - 1) * logs[1] - special.betaln(a, b)
        return -float(at_zero + shares[1] * density + at_one)

    found = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-13, "maxiter": 4000})
    alpha, beta = np.exp(np.minimum(found.x, 700.0))
    return Beta(float(alpha), float(beta))


def fit_curves(outcomes: Any, scores: Any, complements: Any = None) -> list[FittedCurve]:
    """Fit every generalised linear model of the paper's Table 2 and return them, smallest AIC first.

    Twelve models: each pair of link and transform with an intercept, a slope, or both. AIC = 2·parameters - 2·log L.
    """
    s = np.maximum(as_numbers(scores, "scores", 0, 1, ndim=1), TINY)
    y = _beside(s, outcomes, "outcomes")
    # A score that was rounded to 1 is taken half a step below it.
    t = np.maximum(1.0 - s, 2.0**-54) if complements is None else np.maximum(_complements(s, complements), TINY)
    fitted = [_fit_curve(y, s, t, link, transform, terms) for link, transform in FAMILIES for terms in TERMS]
    return sorted(fitted, key=lambda f: f.aic)


def _beside(scores: Array, values: Any, name: str) -> Array:
    found = as_numbers(values, name, 0, 1, ndim=1)
    if len(found) != len(scores):
        raise InvalidInput(f"{name} must be as many as scores", seen=f"{len(found)} for {len(scores)}")
    return found


def _complements(scores: Array, values: Any) -> Array:
    found = _beside(scores, values, "complements")
    if (off := np.abs(scores + found - 1).max()) > SIMPLEX_TOLERANCE:
        raise InvalidInput("complements are not 1 - scores", seen=f"off by {off:.3g}")
    return found


def _fit_curve(y: Array, s: Array, t: Array, link: str, transform: str, terms: str) -> FittedCurve:
    x = transforms[transform](s, t)
    free = np.array(["b0" in terms, "b1" in terms])

    def loss(v: Array) -> float:
        b = np.zeros(2)
        b[free] = v
        c, flipped = inverse_links[link](b[0] + b[1] * x)
        return -float(np.log(np.maximum(np.where(y > 0.5, c, flipped), TINY)).mean())

    # Log-concave in the coefficients for all three links; the start lies inside the domain of each.
    sign = -1.0 if (link, transform) == ("logit", "logflip") else 1.0
    start = np.array([0.0 if link == "logit" else -0.5, sign * 0.5])[free]
    found = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12, "maxiter": 2000})
    b = np.zeros(2)
    b[free] = found.x
    aic = 2.0 * free.sum() + 2.0 * len(y) * loss(found.x)
    return FittedCurve(f"{link}_{transform}_{terms}", float(aic), GLM(link, transform, float(b[0]), float(b[1])))


def fit_scenario(y_true: Any, y_prob: Any, name: str = "") -> Scenario:
    """Fit a scenario to a model's outputs: the top label of (n, K) probabilities, or the event of (n,) ones.

    Examples
    --------
    >>> from calibrant.simulation import fit_scenario, scenarios
    >>> y, p = scenarios["resnet152_imgnet"].sample(20000, random_state=0)
    >>> fitted = fit_scenario(y, p)
    >>> abs(fitted.true_error(2) - scenarios["resnet152_imgnet"].true_error(2)) < 0.01
    True
    """
    forecasts = read(y_true, y_prob)
    pairs = forecasts.top
    best = fit_curves(pairs.outcomes, pairs.scores)[0]
    rounded = pairs.scores.astype(forecasts.probabilities.dtype)
    return Scenario(fit_beta(rounded), best.curve, name, f"{best.name} (AIC {best.aic:.2f})")
