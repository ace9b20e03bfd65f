"""Reliability diagrams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..metrics.curves import ReliabilityCurve
from .style import AFTER, BEFORE, axes, dress, ink, legend

__all__ = ["class_grid", "reliability"]


def reliability(
    curve: ReliabilityCurve,
    after: ReliabilityCurve | None = None,
    *,
    ax: Any = None,
    kind: str = "corp",
    histogram: str | None = "linear",
    note: str = "",
) -> Any:
    """Draw what came true against what was said; a true model lies on the diagonal.

    Parameters
    ----------
    curve, after : ReliabilityCurve
        From `calibrant.metrics.reliability_curve` or a measurement; ``after`` is drawn over it.
    ax : matplotlib Axes, optional
    kind : {"corp", "bars"}
        The isotonic curve with binned marks over it, or bars to the frequency of each bin.
    histogram : {"linear", "log"} or None
        Scale of the strip that shows how many rows say what.
    note : str
        Text for the corner, such as the error with its interval.

    Returns
    -------
    matplotlib Axes
    """
    if kind not in ("corp", "bars"):
        raise InvalidInput("kind is not known", seen=repr(kind), allowed="'corp' or 'bars'")
    ax = axes(ax)
    neutral = ink(ax)
    ax.plot([0, 1], [0, 1], color=neutral, linestyle=(0, (1, 2)), linewidth=1, zorder=1)
    _draw(ax, curve, BEFORE if after is not None else AFTER, "o", "before" if after is not None else None, kind)
    if after is not None:
        _draw(ax, after, AFTER, "s", "after", kind)
        legend(ax, loc="lower right")
    if histogram is not None:
        _strip(ax, curve, after, histogram)
    if note:
        ax.text(0.03, 0.97, note, transform=ax.transAxes, va="top", fontsize="small", color=neutral)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability said", ylabel="share that came true", aspect="equal")
    return dress(ax)


def _draw(ax: Any, curve: ReliabilityCurve, colour: str, marker: str, label: str | None, kind: str) -> None:
    bins, steps = curve.binned, curve.isotonic
    if kind == "bars":
        width = bins.right - bins.left
        ax.bar(bins.left, bins.frequency, width, align="edge", color=colour, alpha=0.35, edgecolor=colour, zorder=2)
    else:
        x = np.column_stack([steps.left, steps.right]).ravel()
        style = "--" if label == "before" else "-"
        ax.plot(x, np.repeat(steps.level, 2), color=colour, linestyle=style, linewidth=1.5, zorder=3)
    error = np.maximum(0, [bins.frequency - bins.low, bins.high - bins.frequency])
    face = "none" if label == "before" else colour
    options = {"markersize": 4.5, "markerfacecolor": face, "color": colour, "elinewidth": 1, "zorder": 4}
    ax.errorbar(bins.score, bins.frequency, error, fmt=marker, label=label, **options)


def _strip(ax: Any, curve: ReliabilityCurve, after: ReliabilityCurve | None, scale: str) -> None:
    if scale not in ("linear", "log"):
        raise InvalidInput("histogram is not known", seen=repr(scale), allowed="'linear', 'log' or None")
    strip = ax.inset_axes((0, -0.34, 1, 0.16), sharex=ax, facecolor=ax.get_facecolor())
    pairs = [(curve, BEFORE if after is not None else AFTER)] + ([(after, AFTER)] if after is not None else [])
    for found, colour in pairs:
        strip.stairs(found.counts, found.edges, color=colour, fill=len(pairs) == 1, alpha=0.8)
    strip.set(yscale=scale, yticks=[], ylabel="rows")
    strip.tick_params(labelbottom=False)
    dress(strip)


def class_grid(curves: Sequence[ReliabilityCurve], *, columns: int = 4, most: int = 12) -> Any:
    """Draw small multiples of class-wise curves, the largest gaps first, and return their figure."""
    from matplotlib.figure import Figure

    worst = sorted(curves, key=_gap, reverse=True)[:most]
    if not worst:
        raise InvalidInput("there are no class curves to draw", hint="an event's probabilities have none")
    rows = -(-len(worst) // columns)
    figure = Figure(figsize=(2.0 * columns, 2.1 * rows), layout="constrained")
    for i, curve in enumerate(worst):
        ax = figure.add_subplot(rows, columns, i + 1)
        reliability(curve, ax=ax, histogram=None, note=f"{curve.view}\n{_gap(curve):.3f}")
        ax.set(xlabel="", ylabel="", xticks=[0, 1], yticks=[0, 1])
    return figure


def _gap(curve: ReliabilityCurve) -> float:
    bins = curve.binned
    return float(bins.weight @ np.abs(bins.score - bins.frequency) / bins.weight.sum())
