"""The only rule for held-out losses and their error, and the only place that speaks to the user about a fit.

What a map would lose on rows that it was not fitted on is known in one of two ways:

- **By refitting** (`cross_validate`): on all rows but a fold, for each of five folds (`calibrant.passes.folds`); above
  a million scores on one fold only, which is as telling there, and of which a sample of rows judges the fit. This is
  the rule. Of so many rows of two classes, maps that learn from fine cells are judged by those of the fold: by all its
  rows, each at the middle of its cell.
- **By Akaike's estimate** (`estimate`), for maps that minimise a log-loss, with or without a penalty, and know how many
  parameters γ their rows determine: the loss on the rows plus γ/n. It is what leaving out one row at a time
  comes to (Stone 1977), without refitting.

Either way the error is the standard error of the mean difference between a row's loss with the map and without it:
√(Σ w² (d - d̄)²) / Σ w. Where maps were refitted it is widened by √(1 + n₂/n₁), for n₂ rows judged by maps that were
fitted on n₁ (Nadeau & Bengio 2003): the rows share the maps they judge, and each has helped to fit the others' map.

Where a classifier is sure and wrong, as naive Bayes is, a handful of rows holds most of what a map gains, and most of
the standard error: two errors are not reached, though hardly any row loses. So a gain is shown by bets too
(Waudby-Smith & Ramdas 2024): where a map gains nothing, E d ≥ 0, who stakes a share λ of the money on every row is not
expected to win, so that Π(1 - λd), averaged over some λ, exceeds 1/α with probability α at most. Its inverse is a
p-value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np
from scipy.special import logsumexp

from ..arrays import row_blocks, softmax
from ..errors import caution
from ..passes import Block, Data
from ..passes.survey import judged_rows
from ..types import Array, Floats, Integers
from .report import FitReport

Answer = Callable[[Floats], Floats]
FOLDS = 5
_ONE_FOLD = 1_000_000  # scores from which one fold tells as much as all: 65,536 of its rows judge the fit
_EXACT_BELOW = 80.0  # nats: a float32 holds probabilities down to exp(-87) with all its digits
_STAKES = np.array([0.01, 0.03, 0.1, 0.3, 1.0])  # a nat: from losses of hundreds to those of about one
_ROUNDED = 1e-6  # of a loss: answers in single precision
_PILOT = 1000  # rows that tell the spread of the differences well enough: to about three per cent


def label_losses(probabilities: Floats, labels: Integers) -> Array:
    """Return -log of the probability of each row's label; infinite where that is zero."""
    chosen = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    with np.errstate(divide="ignore"):
        return -np.log(chosen)


def row_losses(loss: str, probabilities: Floats, labels: Integers) -> Array:
    """Return each row's log-loss ("nll") or squared distance to the one-hot label ("brier")."""
    if loss == "nll":
        return label_losses(probabilities, labels)
    chosen = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    return np.einsum("ij,ij->i", probabilities, probabilities, dtype=np.float64) - 2 * chosen + 1


def raw_losses(loss: str, logits: Floats, labels: Integers) -> Array:
    """Return `row_losses` of scores as they came, finite also where a probability is too small for a float."""
    losses = row_losses(loss, softmax(logits), labels)
    lost = np.flatnonzero(losses > _EXACT_BELOW) if loss == "nll" else []
    if len(lost):
        z = logits[lost].astype(np.float64)
        losses[lost] = logsumexp(z, axis=1) - z[np.arange(len(lost)), labels[lost]]
    return losses


@dataclass(frozen=True)
class Comparison:
    """Sums over judged rows: of w, w·before, w·after, of w², w²·d, w²·d² with d = after - before, and w·log(1 - λd)."""

    sums: Array

    @classmethod
    def none(cls) -> Comparison:
        """Return the sums of no rows."""
        return cls(np.zeros(6 + len(_STAKES)))

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(self.sums + other.sums)

    @property
    def total(self) -> float:
        """The weight of the rows."""
        return float(self.sums[0])

    @property
    def before(self) -> float:
        """Mean loss of the scores as they came."""
        return float(self.sums[1] / self.sums[0])

    @property
    def after(self) -> float:
        """Mean loss of the map."""
        return float(self.sums[2] / self.sums[0])

    @property
    def error(self) -> float:
        """Standard error of the mean difference, rows taken as independent."""
        squares, linear, quadratic = self.sums[3:6]
        mean = self.after - self.before
        if not np.isfinite(mean) or not np.isfinite(quadratic):
            return float("inf")
        spread = quadratic - 2 * mean * linear + mean**2 * squares
        return float(np.sqrt(max(spread, 0.0)) / self.total)

    def pvalue(self, rows: float = 1.0, parameters: float = 0.0) -> float:
        """Return how likely bets against the map lose so much where it gains nothing, for ``rows`` times as many rows.

        ``parameters`` that the same rows have determined cost a stake each. A weight of all rows plays no role.
        """
        if not self.sums[3] > 0 or np.isnan(self.sums[6:]).any():
            return 1.0
        logs = self.sums[6:] * (self.total / self.sums[3]) * rows - _STAKES * parameters
        won = np.logaddexp.reduce(logs) - np.log(len(logs))
        return float(np.exp(-won)) if won > 0 else 1.0

    @classmethod
    def of(cls, before: Array, after: Array, weights: Array) -> Comparison:
        """Return the sums of rows with these losses and weights."""
        counted = weights > 0
        w, b, a = (weights, before, after) if counted.all() else (weights[counted], before[counted], after[counted])
        terms = np.empty((6 + len(_STAKES), len(w)))
        bets = terms[6:]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            d = a - b
            squares = w**2
            terms[:6] = w, w * b, w * a, squares, squares * d, squares * d**2
            np.subtract(1, np.multiply.outer(_STAKES, d), out=bets)
            np.log(np.maximum(bets, 0.0, out=bets), out=bets)
            bets *= w
            return cls(np.add.reduce(terms, axis=1))

    @classmethod
    def of_sums(cls, before: Array, after: Array, weights: Array, squares: Array) -> Comparison:
        """Return the sums of rows many of which have the same losses: so much weight, and so much squared weight."""
        ones = np.ones_like(before)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            d = after - before
            plain = (weights * term for term in (ones, before, after))
            squared = (squares * term for term in (ones, d, d**2))
            bets = (weights * np.log(np.maximum(1 - stake * d, 0.0)) for stake in _STAKES.tolist())
            return cls(np.array([np.add.reduce(terms) for terms in chain(plain, squared, bets)]))


def compare_losses(block: Block, before: Answer, after: Answer, loss: str = "nll") -> Comparison:
    """One pass: the losses of two maps on the same rows, a few at a time so that no answer of all rows is held."""
    found = Comparison.none()
    for first, second, weights in _losses_of_both(block, before, after, loss):
        found += Comparison.of(first, second, weights)
    return found


def _losses_of_both(block: Block, before: Answer, after: Answer, loss: str) -> Iterator[tuple[Array, Array, Array]]:
    """Losses of two maps and the weights, some rows at a time."""
    weights = block.weight_array
    for part in row_blocks(*block.logits.shape):
        z, labels = block.logits[part], block.labels[part]
        yield _losses(before, loss, z, labels), _losses(after, loss, z, labels), weights[part]


def _losses(answer: Answer, loss: str, logits: Floats, labels: Integers) -> Array:
    """Losses of a map's answers; those of the scores as they came need not go through a float."""
    if answer is softmax:
        return raw_losses(loss, logits, labels)
    return row_losses(loss, answer(logits), labels)


def mean_losses(data: Data, before: Answer, after: Answer) -> tuple[float, float]:
    """Return the mean log-losses of two maps over all rows, by one pass."""
    first, second = data.reduce(partial(_summed_losses, before=before, after=after)) / data.total_weight
    return float(first), float(second)


def _summed_losses(block: Block, before: Answer, after: Answer) -> Array:
    """One pass: Σ w·before and Σ w·after; a row of no weight says nothing, whatever its loss."""
    found = np.zeros(2)
    for first, second, weights in _losses_of_both(block, before, after, "nll"):
        for i, losses in enumerate((first, second)):
            found[i] += np.add.reduce(weights * np.where(weights > 0, losses, 0.0))
    return found


def judged(report: FitReport, found: Comparison, trained_on: float = np.inf) -> FitReport:
    """Fill in the held-out losses from rows that were judged by maps fitted on ``trained_on`` others."""
    error = found.error * float(np.sqrt(1.0 + found.total / trained_on))
    return replace(
        report,
        held_out_before=found.before,
        held_out_after=found.after,
        held_out_error=error,
        held_out_pvalue=found.pvalue(),
    )


def one_fold_tells(data: Data) -> bool:
    """Tell whether there are so many scores that one fold judges a fit on the others."""
    return data.size >= _ONE_FOLD


def judging_rows(held: Data) -> Data:
    """Return rows held out, or a sample of them in memory that tells as much; all where many are alike."""
    few = min(judged_rows(held.columns), held.n)
    if held.known is None and held.n == few:
        return held
    sample = held.judging(few)
    return sample if sample.n == few else held


def cross_validate(report: FitReport, data: Data, fit: Callable[[Data], Answer], before: Answer) -> FitReport:
    """Fill in the held-out losses by refitting without each fold; nothing where there are fewer than ten rows."""
    if data.n < 2 * FOLDS:
        return report
    found = Comparison.none()
    used = 0
    for fold in range(FOLDS):
        rest, held = data.without(fold, FOLDS), data.only(fold, FOLDS)
        if rest.total_weight <= 0 or held.total_weight <= 0:
            continue
        after = fit(rest)
        found += judging_rows(held).reduce(partial(compare_losses, before=before, after=after, loss=report.loss))
        used += 1
        if one_fold_tells(data):
            break
    if not used:
        return report
    return judged(report, found, data.total_weight - found.total / used)


def estimate(report: FitReport, data: Data, before: Answer, after: Answer, effective: float) -> FitReport:
    """Fill in the held-out losses by Akaike's estimate: what the rows determine costs as much again on other rows.

    Parameters
    ----------
    report : FitReport
        With the losses on all rows.
    data : Data
    before, after : callable
        From logits to probabilities, without the map and with it; both are looked at on a sample of the rows only,
        to learn how much the rows' differences spread.
    effective : float
        γ, the number of parameters that the rows determine.
    """
    some = data.pilot(_PILOT)
    found = some.reduce(partial(compare_losses, before=before, after=after, loss=report.loss))
    total = data.total_weight
    error = found.error * float(np.sqrt(found.total / total))
    return replace(
        report,
        held_out_before=report.loss_before,
        held_out_after=report.loss_after + effective / total,
        held_out_error=float(np.hypot(error, np.sqrt(effective) / total)),
        held_out_pvalue=found.pvalue(total / found.total, effective),
        details={**report.details, "effective_parameters": effective},
    )


def stated(report: FitReport, some: Data, data: Data) -> FitReport:
    """Return the report of a fit on some of the rows, with a message that says so."""
    if some is data or some.total_weight == data.total_weight:
        return report
    sample = f"fitted on a sample of {some.n:,} of {data.n:,} rows, chosen by a hash of their content"
    return replace(report, messages=(*report.messages, sample))


def tell(report: FitReport, name: str, *, cautious: bool = False) -> None:
    """Warn about what the report says a user should know.

    Of a gain that noise could explain with ``cautious`` only, or where the map loses on the very rows it was fitted on.
    """
    for message in report.messages:
        caution(f"{name}: {message}")
    if not report.converged:
        caution(
            f"{name} did not converge in {report.iterations} iterations; {report.loss} went from "
            f"{report.loss_before:.6g} to {report.loss_after:.6g}"
        )
    loses = report.loss_after > report.loss_before + _ROUNDED * abs(report.loss_before)
    doubt = _doubt(report, cautious or loses or bool(report.caveat))
    if doubt:
        caution(f"{name} {doubt}; {_remedy(report)}")


def _doubt(report: FitReport, cautious: bool) -> str:
    """Say in which way the map may be worse than none; nothing where it is clearly better."""
    loss = report.loss
    if report.held_out_after is None:
        unknown = f"has too few rows for a held-out {loss}: nothing says that it is better than the raw probabilities"
        return unknown if cautious else ""
    if report.harms:
        return f"makes its held-out {loss} worse than {_instead(report, 'leaving the scores alone')}: {_both(report)}"
    if cautious and report.unproven:
        return (
            f"is not clearly better than {_instead(report, 'the raw probabilities')}: its held-out {loss} is "
            f"{_both(report)}, give or take {report.held_out_error:.4f}"
        )
    if report.caveat:
        return (
            f"may be worse than the raw probabilities on other rows: its held-out {loss} is {_both(report)}, "
            "but that proves little"
        )
    return ""


def _remedy(report: FitReport) -> str:
    """What to do about it."""
    if not report.caveat:
        return "use a map with fewer parameters or more rows"
    return f'{report.caveat}: let the classes share one map (share="all"), use sms, or more rows'


def _both(report: FitReport) -> str:
    """The two held-out losses, with as many digits as tell them apart."""
    for digits in range(4, 13):
        after, before = f"{report.held_out_after:.{digits}f}", f"{report.held_out_before:.{digits}f}"
        if after != before:
            return f"{after} against {before}"
    return f"{report.held_out_after:.4f} against {report.held_out_before:.4f}"


def _instead(report: FitReport, scores: str) -> str:
    """What there is without the map: the scores, in these words, or what embeddings leave."""
    return "the class frequencies" if report.details.get("before") == "class frequencies" else scores
