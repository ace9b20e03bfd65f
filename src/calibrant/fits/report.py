"""What a fit says about itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

__all__ = ["FitReport"]

_ERRORS, _PROVEN = 1.96, 0.025  # standard errors of a 95 % interval, and what lies beyond it on one side


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
        The same loss on rows the fit did not see, of the scores as they came and of the map; see
        `calibrant.fits.judge` for how it is known. None where there are too few rows to tell.
    held_out_error : float or None
        Standard error of the difference of these two, from the spread of the rows' differences.
    held_out_pvalue : float or None
        How likely the rows gain as much by bets where the map gains nothing; it needs no standard error, which a few
        rows that were sure and wrong can blow up.
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
    held_out_pvalue: float | None = None

    def gone_on(self, passes: int, converged: bool, loss_after: float, **details: Any) -> FitReport:
        """Return the report of a fit that began with this one and went on from it."""
        converged = (self.converged or bool(self.at_bound)) and converged
        return replace(
            self, iterations=self.iterations + passes, converged=converged, loss_after=loss_after, details=details
        )

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
        """Whether the held-out loss is not better than that of the scores by 1.96 errors, nor shown by bets."""
        if self.held_out_after is None or self.held_out_before is None or not np.isfinite(self.held_out_before):
            return False
        gain = self.held_out_before - self.held_out_after
        return not gain > _ERRORS * (self.held_out_error or 0.0) and not (gain > 0 and self._bets_are_won)

    @property
    def _bets_are_won(self) -> bool:
        return self.held_out_pvalue is not None and self.held_out_pvalue < _PROVEN

    def __str__(self) -> str:
        """Say it in a few lines; ± covers 95 %."""
        name = {"nll": "log-loss", "brier": "Brier score"}.get(self.loss, self.loss)
        lines = [f"{name}: {_change(self.loss_before, self.loss_after)} on the rows fitted"]
        if self.held_out_before is None or self.held_out_after is None:
            lines.append("too few rows to tell how it does on others")
        else:
            lines.append(
                f"{name}: {_change(self.held_out_before, self.held_out_after)} on other rows{self._judgement()}"
            )
        steps = f"{self.iterations} {'step' if self.iterations == 1 else 'steps'}"
        ended = f"converged in {steps}" if self.converged else f"did not converge in {steps}"
        lines.append(ended if self.iterations else "found in closed form")
        lines += [f"at the edge of its range: {', '.join(self.at_bound)}"] if self.at_bound else []
        lines += [f"note: {message}" for message in (*self.messages, self.caveat) if message]
        return "\n".join(lines)

    def _judgement(self) -> str:
        """What the held-out losses say about using the map."""
        before, after, error = self.held_out_before, self.held_out_after, self.held_out_error
        if before is None or after is None or not np.isfinite(after - before):
            return ""
        size = f" ({after - before:+.4f} ± {_ERRORS * error:.4f})" if error is not None and np.isfinite(error) else ""
        if self.harms or self.unproven:
            return size + (": worse than without the map" if self.harms else ": not clearly better")
        few = before - after <= _ERRORS * (error or 0.0)  # rows, whose spread is as large as what they gain
        return size + (f": better (p ≤ {self.held_out_pvalue:.2g}), by how much few rows decide" if few else "")


def _change(before: float, after: float) -> str:
    written = ["∞" if value == np.inf else f"{value:.4f}" for value in (before, after)]
    return f"{written[0]} before, {written[1]} after"
