"""Comparisons of maps, and learning curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidInput
from .style import AFTER, LINES, axes, dress, ink, legend, named, refuse_other


def comparison(found: Any, *, metric: str = "nll", ax: Any = None) -> Any:
    """Draw the paired difference of each map of a `Comparison` to the scores as they came; left of zero is better.

    Where their loss is infinite, the difference is to the map with the lowest.
    """
    refuse_other(found, "differences", "a Comparison")
    compared = [name for row in found.rows for name in row.against_identity]
    if metric not in compared:
        known = ", ".join(dict.fromkeys(compared))
        raise InvalidInput("maps were not compared by this metric", seen=repr(metric), allowed=known)
    reference, pairs = found.differences(metric)
    rows, gaps = [row for row, _ in pairs[::-1]], [gap for _, gap in pairs[::-1]]
    ax = axes(ax, figsize=(5.5, 0.32 * len(rows) + 1.2))
    places = np.arange(len(rows))
    ax.axvline(0, color=ink(ax), linestyle=(0, (1, 2)), linewidth=1)
    ax.errorbar(
        [g.value for g in gaps], places, xerr=[1.96 * g.error for g in gaps], fmt="o", color=AFTER, elinewidth=1
    )
    for place, row in zip(places, rows, strict=True):
        if row.name == found.best_:
            ax.plot(gaps[place].value, place, "o", markersize=11, markerfacecolor="none", color=ink(ax))
    ax.set_yticks(places, [named(row.name) for row in rows])
    ax.set_xlabel(f"held-out {metric}, difference to {named(reference)} (95 % interval)")
    ax.locator_params(axis="x", nbins=5)
    return dress(ax)


def learning_curve(found: Any, *, ax: Any = None) -> Any:
    """Draw held-out loss against the rows fitted on, for each map of a `Comparison` made with ``sizes``."""
    refuse_other(found, "curves", "a Comparison")
    if not found.curves:
        raise InvalidInput("there are no learning curves to draw", hint="compare(…, sizes=[…]) makes them")
    ax = axes(ax, figsize=(5.5, 3.6))
    for i, curve in enumerate(found.curves):
        colour, style, marker = LINES[i % len(LINES)]
        values = [e.value for e in curve.estimates]
        errors = [1.96 * e.error for e in curve.estimates]
        shape = {"color": colour, "linestyle": style, "marker": marker, "markersize": 4, "elinewidth": 0.8}
        aside = 1.03 ** (i - (len(found.curves) - 1) / 2)  # so that intervals at one size stand side by side
        ax.errorbar([aside * size for size in curve.sizes], values, errors, label=named(curve.name), **shape)
    ax.set_xscale("log")
    sizes = sorted({size for curve in found.curves for size in curve.sizes})
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.set_xticks([], minor=True)
    ax.set(xlabel="rows to fit on", ylabel=f"held-out {found.curves[0].metric}")
    legend(ax, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return dress(ax)
