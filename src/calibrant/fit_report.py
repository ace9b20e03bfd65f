"""What a fit says about itself, and the check that it did no harm."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import inner, row_blocks
from .errors import CalibrationWarning
from .passes import Sample

__all__ = ["FitReport", "held_out", "label_losses", "mean_loss", "row_losses", "tell"]

Predictor = Callable[[NDArray[np.floating]], NDArray[np.floating]]


@dataclass(frozen=True)
class FitReport:
    """How a fit went. Losses are means over the calibration set, in nats for the log-loss.

    Attributes
    ----------
    iterations : int
        Passes or solver steps; 0 for closed forms.
    converged : bool
        Whether the solver met its own stopping rule.
    loss : str
        Name of the loss that was minimised.
    loss_before, loss_after : float
        Its value for the scores as they came, and for the fitted map.
    held_out_before, held_out_after : float or None
        The same loss on rows the fit did not see (cross-validated), of the scores as they came and of the map. None
        where there are too few rows to hold any out.
    held_out_error : float or None
        Standard error of the difference of these two. Where the map was refitted on folds that share rows, with the
        correction of Nadeau and Bengio (2003); see `with_held_out`.
    at_bound : tuple of str
        Parameters that ended at the edge of their range.
    messages : tuple of str
        Anything else a user should read.
    details : dict
        Figures of this map's own solver.
    caveat : str
        What the rows are too few for, so that the held-out losses prove little even where they are better; or empty.
    """

    iterations: int
    converged: bool
    loss: str
    loss_before: float
    loss_after: float
    held_out_before: float | None = None
    held_out_after: float | None = None
    held_out_error: float | None = None
    at_bound: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    caveat: str = ""

    @property
    def harms(self) -> bool:
        """Whether the held-out loss is worse than leaving the scores alone, by more than its standard error."""
        if self.held_out_after is None or self.held_out_before is None:
            return False
        if not np.isfinite(self.held_out_after):
            return bool(np.isfinite(self.held_out_before))
        return self.held_out_after - self.held_out_before > (self.held_out_error or 0.0)

    @property
    def unproven(self) -> bool:
        """Whether the held-out loss is not better than leaving the scores alone by two standard errors."""
        if self.held_out_after is None or self.held_out_before is None or not np.isfinite(self.held_out_before):
            return False
        return not self.held_out_before - self.held_out_after > 2 * (self.held_out_error or 0.0)


def label_losses(probabilities: NDArray[np.floating], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return -log of the probability of each row's label; infinite where that is zero."""
    chosen = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    with np.errstate(divide="ignore"):
        return -np.log(chosen)


def row_losses(loss: str, probabilities: NDArray[np.floating], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return each row's log-loss ("nll") or squared distance to the one-hot label ("brier")."""
    if loss == "nll":
        return label_losses(probabilities, labels)
    chosen = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    return np.einsum("ij,ij->i", probabilities, probabilities, dtype=np.float64) - 2 * chosen + 1


def mean_loss(loss: str, probabilities: NDArray[np.floating], sample: Sample) -> float:
    """Return the weighted mean of `row_losses`."""
    return float(np.average(row_losses(loss, probabilities, sample.labels), weights=sample.weights))


def held_out(
    report: FitReport, sample: Sample, fit: Callable[[Sample], Predictor], identity: Predictor, folds: int = 5
) -> FitReport:
    """Fill in the held-out losses by cross-validation.

    Every row is held out once; above two million scores a single fold of a fifth is used, which is as telling
    there and four fits cheaper, and the rows left are not copied.
    """
    if sample.n < 2 * folds:
        return report
    before, after, weights = [], [], []
    large = sample.logits.size > 2_000_000
    for rest, fold in sample.folds(folds, copy=not large):
        if not rest.weight_array.any() or not fold.weight_array.any():
            continue
        after.append(_losses_in_blocks(report.loss, fit(rest), fold))
        before.append(_losses_in_blocks(report.loss, identity, fold))
        weights.append(fold.weight_array)
        if large:
            break
    if not weights:
        return report
    held = np.concatenate(weights)
    trained_on = sample.total_weight - float(held.sum()) / len(weights)
    return with_held_out(report, np.concatenate(before), np.concatenate(after), held, trained_on)


def _losses_in_blocks(loss: str, predict: Predictor, sample: Sample) -> NDArray[np.float64]:
    """Return the losses of rows, a few at a time, so that probabilities of all of them are never held."""
    blocks = row_blocks(*sample.logits.shape)
    return np.concatenate([row_losses(loss, predict(sample.logits[b]), sample.labels[b]) for b in blocks])


def with_held_out(
    report: FitReport,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    weights: NDArray[np.float64],
    trained_on: float = np.inf,
) -> FitReport:
    """Fill in the held-out losses from the losses of held-out rows.

    Rows are no independent witnesses: they share the maps they judge, and each has helped to fit the others' map. With
    J folds of n₂ rows each and maps ``trained_on`` n₁ rows, Nadeau & Bengio (2003) put the variance of the mean at
    (1/J + n₂/n₁) S², S² that of a fold's mean: the variance of independent rows times 1 + J n₂/n₁. For five folds
    the error is 1.5 times that of independent rows.
    """
    total = weights.sum()
    mean_before, mean_after = inner(weights, before) / total, inner(weights, after) / total
    with np.errstate(invalid="ignore"):
        difference = after - before
        spread = inner(weights**2, (difference - (mean_after - mean_before)) ** 2)
    error = float(np.sqrt(spread * (1 + total / trained_on)) / total) if np.isfinite(spread) else float("inf")
    return replace(report, held_out_before=float(mean_before), held_out_after=float(mean_after), held_out_error=error)


def tell(report: FitReport, name: str, stacklevel: int = 3, *, cautious: bool = False) -> None:
    """Warn about what the report says a user should know; with ``cautious`` also of a gain that noise could explain."""
    for message in report.messages:
        warnings.warn(f"{name}: {message}", CalibrationWarning, stacklevel=stacklevel)
    if not report.converged:
        warnings.warn(
            f"{name} did not converge in {report.iterations} iterations; {report.loss} went from "
            f"{report.loss_before:.6g} to {report.loss_after:.6g}",
            CalibrationWarning,
            stacklevel=stacklevel,
        )
    doubt = _doubt(report, cautious or bool(report.caveat))
    if doubt:
        warnings.warn(f"{name} {doubt}; {_remedy(report)}", CalibrationWarning, stacklevel=stacklevel)


def _doubt(report: FitReport, cautious: bool) -> str:
    """Say in which way the map may be worse than none; nothing where it is clearly better."""
    loss = report.loss
    if report.held_out_after is None:
        unknown = f"has too few rows for a held-out {loss}: nothing says that it is better than the raw probabilities"
        return unknown if cautious else ""
    if report.harms:
        return f"makes its held-out {loss} worse than {_instead(report)}: {_both(report)}"
    if cautious and report.unproven:
        return (
            f"is not clearly better than the raw probabilities: its held-out {loss} is {_both(report)}, "
            f"give or take {report.held_out_error:.4f}"
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
    written = [f"{report.held_out_after:.{n}f} against {report.held_out_before:.{n}f}" for n in range(4, 13)]
    return next((text for text in written if len(set(text.split(" against "))) > 1), written[0])


def _instead(report: FitReport) -> str:
    """What there is without the map."""
    return (
        "the class frequencies" if report.details.get("before") == "class frequencies" else "leaving the scores alone"
    )
