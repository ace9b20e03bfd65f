"""Plots of the laboratory and of binning: the bias of estimators, and edges over the densities they cut."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..validation.arrays import as_array, as_float
from .style import AFTER, BEFORE, axes, dress, ink, legend, numbers


def bias_heat_map(bias: Any, n: Any, bins: Any, *, ax: Any = None) -> Any:
    """Draw the bias of an estimator in points, bins × n, as `experiments.bias` gives it (paper 003, Figure 4)."""
    n, bins = (numbers(name, given, (-1,), 1e12) for name, given in (("n", n), ("bins", bins)))
    values = 100 * numbers("bias", bias, (len(bins), len(n)), 1.0)
    ax = axes(ax, figsize=(1.2 + 0.75 * len(n), 1.0 + 0.42 * len(bins)))
    most = float(np.abs(values).max()) or 1.0
    ax.imshow(values, cmap="PuOr", vmin=-most, vmax=most, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        colour = "white" if abs(value) > 0.65 * most else "black"
        ax.text(column, row, f"{value:+.2f}", ha="center", va="center", fontsize="small", color=colour)
    ax.set_xticks(range(len(n)), [f"{v:,.0f}" for v in n])
    ax.set_yticks(range(len(bins)), [f"{b:g}" for b in bins])
    ax.set(xlabel="rows", ylabel="bins")
    return dress(ax)


def edges_over_densities(log_odds: Any, outcomes: Any, edges: Any, *, ax: Any = None) -> Any:
    """Draw the densities of the log-odds of both outcomes and the edges that cut them (paper 002, Figure 2).

    Parameters
    ----------
    log_odds : array-like of shape (n,)
    outcomes : array-like of shape (n,)
        1 where the class is the label.
    edges : array-like
        In log-odds.
    """
    scores = numbers("log_odds", log_odds, (-1,), 1e100)
    happened = numbers("outcomes", outcomes, scores.shape, 1.0) > 0
    found = as_float(as_array(edges, "edges")[0], "edges").ravel()
    ax = axes(ax, figsize=(5.5, 3.2))
    low, high = np.quantile(scores, [0.001, 0.999])
    if high - low <= 1e-9 * max(1.0, abs(low)):
        low, high = low - 0.5 * max(1.0, abs(low)), high + 0.5 * max(1.0, abs(low))
    places = np.linspace(low, high, 81)
    for mask, colour, style, label in ((~happened, BEFORE, "--", "not the class"), (happened, AFTER, "-", "the class")):
        if mask.any():
            counts, _ = np.histogram(scores[mask], places, density=True)
            ax.stairs(counts, places, color=colour, linestyle=style, label=label)
    for edge in found[np.isfinite(found)]:
        ax.axvline(edge, color=ink(ax), linewidth=0.8, alpha=0.7)
    ax.set(xlabel="log-odds", ylabel="density", xlim=(places[0], places[-1]))
    legend(ax, loc="upper center")
    return dress(ax)
