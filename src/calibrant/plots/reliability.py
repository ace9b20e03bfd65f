"""Reliability diagrams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..metrics.estimators.curves import ReliabilityCurve, count_ticks, reliability_curve
from ..metrics.measurement import Measurement
from ..parameters import check_value, count_from, is_one_of
from .style import AFTER, BEFORE, axes, dress, ink, legend, new_figure


def reliability(
    found: Any,
    after: Any = None,
    *,
    ax: Any = None,
    kind: str = "corp",
    histogram: str | None = "sqrt",
    note: str = "",
) -> Any:
    """Draw what came true against what was said; a true model lies on the diagonal.

    Parameters
    ----------
    found : Measurement or ReliabilityCurve
        From `calibrant.measure`, or `calibrant.metrics.reliability_curve`. Or labels, with probabilities behind.
    after : Measurement or ReliabilityCurve, optional
        Drawn over it; the probabilities where ``found`` are labels.
    ax : matplotlib Axes, optional
        Else a new figure of pyplot: ``plt.show()`` shows it.
    kind : {"corp", "bars"}
        The isotonic curve with binned marks over it, or bars to the frequency of each bin.
    histogram : {"sqrt", "log", "linear"} or None
        Scale of the strip that shows how many rows say what.
    note : str
        Text for the corner, such as the error with its interval.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from calibrant import measure, plots
    >>> ax = plots.reliability(measure([0, 1, 1, 0], [0.2, 0.6, 0.9, 0.4], resamples=19))
    >>> ax.get_xlabel()
    'probability said'
    """
    if not is_one_of(kind, ("corp", "bars")):
        raise InvalidInput("kind is not known", seen=repr(kind), allowed="'corp' or 'bars'")
    curve, after = _curves(found, after)
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


def _curves(found: Any, after: Any) -> tuple[ReliabilityCurve, ReliabilityCurve | None]:
    """Return the curves of what a user gave: curves, measurements, or labels and probabilities."""
    if not isinstance(found, (ReliabilityCurve, Measurement)):
        if after is None or isinstance(after, (ReliabilityCurve, Measurement)):
            raise InvalidInput(
                "this is nothing that a reliability diagram can be drawn of",
                seen=type(found).__name__,
                allowed="a measurement, a reliability curve, or labels and probabilities",
            )
        return reliability_curve(found, after), None
    if after is not None and not isinstance(after, (ReliabilityCurve, Measurement)):
        raise InvalidInput("after must be a measurement or a reliability curve", seen=type(after).__name__)
    return _curve(found), None if after is None else _curve(after)


def _curve(found: Measurement | ReliabilityCurve) -> ReliabilityCurve:
    return found.curve if isinstance(found, Measurement) else found


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
    """Draw how many rows say what, below the diagram."""
    if not is_one_of(scale, ("sqrt", "log", "linear")):
        raise InvalidInput("histogram is not known", seen=repr(scale), allowed="'sqrt', 'log', 'linear' or None")
    strip = ax.inset_axes((0, -0.38, 1, 0.2), sharex=ax, facecolor=ax.get_facecolor())
    pairs = [(curve, BEFORE if after is not None else AFTER)] + ([(after, AFTER)] if after is not None else [])
    most = max(float(found.counts.max()) for found, _ in pairs)
    floor = 0.5 if scale == "log" else 0.0  # a logarithm needs a ground below one row
    for found, colour in pairs:
        strip.stairs(np.maximum(found.counts, floor), found.edges, baseline=floor, color=colour, fill=len(pairs) == 1)
    if scale == "sqrt":
        strip.set_yscale("function", functions=(_root, np.square))
    else:
        strip.set_yscale(scale)
    ticks = count_ticks(most, scale)
    strip.set_yticks(ticks, [f"{tick:,g}" for tick in ticks], fontsize="small")
    strip.set_yticks([], minor=True)
    strip.set_ylim(floor, 1.15 * most)
    strip.set_ylabel("rows")
    strip.tick_params(labelbottom=False)
    dress(strip)


def _root(values: Any) -> Any:
    return np.sqrt(np.maximum(values, 0))


def class_grid(found: Measurement | Sequence[ReliabilityCurve], *, columns: int = 4, most: int = 12) -> Any:
    """Draw small multiples of class-wise curves, the largest gaps first, and return their figure (one of pyplot).

    Parameters
    ----------
    found : Measurement or sequence of ReliabilityCurve
    """
    check_value("columns", columns, count_from(1))
    check_value("most", most, count_from(1))
    curves = found.class_curves if isinstance(found, Measurement) else found
    if not isinstance(curves, Sequence) or not all(isinstance(curve, ReliabilityCurve) for curve in curves):
        raise InvalidInput(
            "this is no sequence of curves", seen=type(found).__name__, allowed="a Measurement, or curves"
        )
    worst = sorted(curves, key=lambda curve: curve.mean_gap, reverse=True)[:most]
    if not worst:
        raise InvalidInput("there are no class curves to draw", hint="an event's probabilities have none")
    columns = min(columns, len(worst))
    rows = -(-len(worst) // columns)
    figure = new_figure((2.0 * columns, 2.1 * rows))
    for i, curve in enumerate(worst):
        ax = figure.add_subplot(rows, columns, i + 1)
        reliability(curve, ax=ax, histogram=None, note=f"{curve.view}\n{curve.mean_gap:.3f}")
        ax.set(xlabel="", ylabel="", xticks=[0, 1], yticks=[0, 1])
    return figure
