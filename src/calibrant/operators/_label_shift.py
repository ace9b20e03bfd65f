"""Class frequencies of rows without labels, from calibrated probabilities; and whether labels alone have shifted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from ..fits.solvers.simplex import Sums, minimise_on_simplex
from ..types import Array, Floats, Integers

_NEWTON = 256  # classes up to which a Hessian is worth its passes; beyond, EM
_MOST, _FIRST = 5000, 20  # steps of EM: alone, and before Newton
_CERTAIN = 1e-8  # nats a row that the likelihood is below its largest, at most
_LEAST = 5.0  # rows expected in a bin of the test
_Z = 1.959963984540054  # of a 95 % interval


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Class frequencies, 95 % intervals (K, 2), what the likelihood may still lack (nats a row), steps."""

    values: Array
    interval: Array
    certificate: float
    steps: int


def find_frequencies(p: Floats, source: Array, weights: Array, pseudo: float) -> Frequencies:
    """Maximise mean log Σ_k q_k p_ik/π_k + c K/n Σ_k π_k log q_k: the likelihood and a Dirichlet(1 + c K π) prior of q.

    It is concave, so that the limit of EM (Saerens, Latinne & Decaestecker 2002) is the maximum from any start. The
    certificate is max_k ∂/∂q_k less its mean under q: no q does better by more than that. Without the prior classes
    end at exactly zero, and rows of theirs have an infinite loss; with many classes q then follows chance.
    """
    ratio = p / source
    n = float(weights.sum())
    share, prior = weights / n, pseudo * len(source) * source / n

    def slope(q: Array) -> tuple[Array, Array]:
        seen = ratio / (ratio @ q)[:, None]
        return seen, share @ seen + prior / q

    q, steps = np.full(len(source), 1.0 / len(source)), 0
    most = _MOST if len(source) > _NEWTON else _FIRST
    while steps < most:
        _, up = slope(q)
        steps += 1
        q = q * up / (q @ up)
        if up.max() - q @ up <= _CERTAIN:
            break
    if len(source) <= _NEWTON:
        q, more = _by_newton(q, ratio, share, prior)
        steps += more
    seen, up = slope(q)
    return Frequencies(q, _interval(q, seen, share, prior), float(up.max() - q @ up), steps)


def _by_newton(q: Array, ratio: Array, share: Array, prior: Array) -> tuple[Array, int]:
    """Finish what EM began: quadratic convergence where EM takes hundreds of steps."""

    def problem(weights: Array, _: Array) -> Sums:
        held = np.maximum(weights, 1e-300)
        mixed = ratio @ held
        seen = ratio / mixed[:, None]
        value = -(share @ np.log(mixed) + prior @ np.log(held))
        curvature = (seen * share[:, None]).T @ seen + np.diag(prior / held**2)
        return Sums(float(value), -(share @ seen + prior / held), curvature)

    found = minimise_on_simplex(problem, q, _CERTAIN**2)
    moved = np.maximum(found.weights, 1e-12)
    moved /= moved.sum()
    return (moved, found.passes) if np.isfinite(moved).all() else (q, found.passes)


def _interval(q: Array, seen: Array, share: Array, prior: Array) -> Array:
    """95 % intervals from the observed information within the simplex, with the spread of the rows (a sandwich)."""
    k = len(q)
    inside = np.eye(k) - 1.0 / k
    information = inside @ ((seen * share[:, None]).T @ seen + np.diag(prior / q**2)) @ inside
    inverse = np.linalg.pinv(information, rcond=1e-10, hermitian=True)
    spread = (seen * (share**2)[:, None]).T @ seen - (share @ share) * np.outer(share @ seen, share @ seen)
    error = np.sqrt(np.maximum(np.diag(inverse @ inside @ spread @ inside @ inverse), 0.0))
    return np.clip(np.stack([q - _Z * error, q + _Z * error], axis=1), 0.0, 1.0)


@dataclass(frozen=True)
class ShiftTest:
    """χ² of the scores of new rows against those of the calibration rows with other class frequencies."""

    statistic: float
    degrees: int
    p_value: float


def bins_of(p: Floats, edges: Array) -> Integers:
    """Return the bin of each row: its top label, and where its confidence lies among that label's edges (K, m)."""
    top = p.argmax(axis=1)
    confidence = p[np.arange(len(p)), top]
    return top * (edges.shape[1] + 1) + (confidence[:, None] >= edges[top]).sum(axis=1)


def label_shift_test(table: Array, priors: Array, bins: Integers, weights: Array) -> ShiftTest:
    """Compare the bins of new rows with Σ_k q_k P(bin | k), which label shift leaves as it was.

    ``table`` holds the weight of the calibration rows by bin and label. Both samples count in the variance. Bins with
    few rows expected are put together. The degrees of freedom are those without the frequencies that were fitted, so
    the test errs on the side of saying nothing.
    """
    rows = float(weights.sum()) ** 2 / float(weights @ weights)
    labelled = np.maximum(table.sum(axis=0), 1e-12)
    given_class = table / labelled
    expected = given_class @ priors
    observed = np.bincount(bins, weights, minlength=len(table)) / weights.sum()
    noise = expected / rows + (given_class * (priors**2 / labelled)).sum(axis=1)
    rest = expected * rows >= _LEAST
    gaps = np.append((observed - expected)[rest], (observed - expected)[~rest].sum())
    noise = np.append(noise[rest], noise[~rest].sum() + 1.0 / rows**2)
    statistic = float((gaps**2 / noise).sum())
    degrees = max(len(gaps) - 1, 1)
    return ShiftTest(statistic, degrees, float(chi2.sf(statistic, degrees)))
