"""What a fit says about itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["FitReport"]


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
