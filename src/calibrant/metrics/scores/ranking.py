"""How well scores tell events from the rest: the area under the ROC curve; and the Brier score against none."""

from __future__ import annotations

import numpy as np

from ...arrays import inner
from ...cells.pairs import Pairs
from ...types import Array


def auroc(pairs: Pairs) -> float:
    """Return the probability that an event's score is above that of what did not happen, ties counted half."""
    return auroc_influence(pairs)[0]


def auroc_influence(pairs: Pairs) -> tuple[float, Array]:
    """Return the area and the influence of each row on it (DeLong et al. 1988, by sorted cells)."""
    cells = pairs.cells
    yes, no = cells.outcomes, cells.weights - cells.outcomes
    if yes.sum() <= 0 or no.sum() <= 0:
        return float("nan"), np.zeros(pairs.n)
    below = (np.cumsum(no) - no / 2) / no.sum()  # share of the others below a score
    above = 1 - (np.cumsum(yes) - yes / 2) / yes.sum()  # share of the events above a score
    area = inner(yes, below) / float(yes.sum())
    place = np.searchsorted(cells.scores, pairs.scores).clip(0, len(cells.scores) - 1)
    rate = float(yes.sum() / cells.weights.sum())
    own = np.where(pairs.outcomes > 0, (below[place] - area) / rate, (above[place] - area) / (1 - rate))
    return area, own


def scaled_brier(pairs: Pairs) -> float:
    """Return 1 - B/(ȳ(1 - ȳ)): the Brier score against that of always saying the frequency ȳ of these rows."""
    return scaled_brier_influence(pairs)[0]


def scaled_brier_influence(pairs: Pairs) -> tuple[float, Array]:
    """Return the scaled Brier score, and the influence of each row on it."""
    w = pairs.weight_array
    losses = (pairs.scores - pairs.outcomes) ** 2
    rate, loss = inner(w, pairs.outcomes) / pairs.total, inner(w, losses) / pairs.total
    most = rate * (1 - rate)
    if most <= 0:
        return float("nan"), np.zeros(pairs.n)
    own = -losses / most + loss / most**2 * (1 - 2 * rate) * (pairs.outcomes - rate)
    return 1 - loss / most, own
