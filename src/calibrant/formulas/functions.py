"""Functions that several maps' formulas use."""

from __future__ import annotations

import numpy as np

from .graph import Term, as_rows

ZERO_LOG = -104.0  # see `calibrant.validation.saturation`


def softmax(z: Term, beta: float = 1.0) -> Term:
    """Return softmax(β z), of scores relative to the largest of their row."""
    return z.softmax() if beta == 1.0 else ((z - z.row_max()) * beta).softmax()


def log_softmax(z: Term, beta: float = 1.0) -> Term:
    """Return log softmax(β z)."""
    below = (z - z.row_max()) * beta
    return below - below.exp().row_sum().log()


def sigmoid(x: Term) -> Term:
    """Return 1 / (1 + e^-x)."""
    small = (-absolute(x)).exp()
    return (x > 0.0).where(1.0, small) / (1.0 + small)


def softplus(x: Term) -> Term:
    """Return log(1 + e^x)."""
    return x.at_least(0.0) + log1p((-absolute(x)).exp())


def absolute(x: Term) -> Term:
    """Return |x|."""
    return x.at_least(-x)


def log1p(x: Term) -> Term:
    """Return log(1 + x) for 0 ≤ x ≤ 1, by its series where the sum would lose digits."""
    return (x > 1e-5).where((1.0 + x).log(), x * (1.0 - x * (0.5 - x / 3.0)))


def one_minus_exp(x: Term) -> Term:
    """Return 1 - e^-x for x ≥ 0, by its series where the difference would lose digits."""
    return (x > 1e-5).where(1.0 - (-x).exp(), x * (1.0 - x * (0.5 - x / 6.0)))


def log_odds(z: Term, *, rounded: bool = True) -> Term:
    """Return λ_k = z_k - log Σ_{j≠k} exp z_j as steps see it: in the precision of the scores, sums on a grid."""
    if z.width == 2:
        difference = z.formula.once(("log-odds", z.place), lambda: z.column(1) - z.column(0))
        difference = difference.rounded() if rounded else difference
        return as_rows([-difference, difference])
    top, first = z.row_max(), z.first_top()
    others = first.where(-np.inf, z)
    second = others.row_max()
    below = z - top
    share = first.where(0.0, below.exp())
    rest = (others - second.at_least(-1e300)).exp().row_sum()
    most = top - second - rest.log()
    odds = first.where(most, below - (1.0 + share.row_sum() - share).log())
    return odds.rounded().gridded() if rounded else odds


def log1m(p: Term) -> Term:
    """Return log(1 - p), by its series where the difference would lose digits."""
    return (p > 1e-5).where((1.0 - p).log(), -(p * (1.0 + p * (0.5 + p / 3.0))))


def read_zeros(z: Term, level: float) -> Term:
    """Return logits in which -inf is read as a probability of exp(``level``), see `validation.saturation`."""
    zero = z.equals(-np.inf)
    top = z.row_max().at_least(-1e300)
    total = top + (z - top).exp().row_sum().log()
    smallest = zero.where(np.inf, z).row_min()
    return zero.where((total + level).at_most(smallest), z)


def floored(z: Term) -> Term:
    """Return logits in which -inf is next to nothing: the row's largest less 104, or its smallest if lower."""
    zero = z.equals(-np.inf)
    return zero.where(_floor(z), z)


def _floor(z: Term) -> Term:
    smallest = z.equals(-np.inf).where(np.inf, z).row_min()
    return (z.row_max() + ZERO_LOG).at_most(smallest)


def finite_logs(p: Term, z: Term) -> Term:
    """Return log p, floored where it is the logarithm of zero, but -inf where the logit was as well."""
    logs = p.log()
    floor = _floor(logs) if z.width != p.width else z.equals(-np.inf).where(-np.inf, _floor(logs))
    return logs.equals(-np.inf).where(floor, logs)


def masked_out(p: Term, z: Term) -> Term:
    """Return p with exact zeros where the logits are -inf, the rest scaled up to sum to one."""
    zero = z.equals(-np.inf)
    left, kept = zero.where(0.0, p), zero.where(0.0, 1.0)
    total = left.row_sum()
    some = total > 0.0
    return some.where(left / some.where(total, 1.0), kept / kept.row_sum().at_least(1.0))


def keep_top(p: Term, z: Term) -> Term:
    """Raise the top classes where rounding has tied them with another, so that the largest answer is theirs."""
    p = p.rounded()
    top = z >= z.row_max()
    below = top.where(-1.0, p).row_max()
    above = top.where(p, 2.0).row_min()
    return (below >= above).where(top.where(p.at_least(below.next_up()), p), p)


def answered(p: Term, given: Term, *, events: bool = False) -> Term:
    """Answer the rows that `predict_proba` refuses: NaN for NaN, one-hot for +inf, 1/K where all is -inf.

    Only scores, a column a class; of other inputs NaN alone is passed on, and of several events to its own event.
    """
    if events:
        return given.is_nan().where(np.nan, p)
    wrong = given.is_nan().where(1.0, 0.0).row_max() > 0.5
    if given.width == p.width:
        most = given.row_max()
        certain = given.equals(np.inf).where(1.0, 0.0)
        p = most.equals(np.inf).where(certain / certain.row_sum().at_least(1.0), p)
        p = most.equals(-np.inf).where(1.0 / p.width, p)
    return wrong.where(np.nan, p)
