"""What a monitor saw: the evidence on its way to the alarm, and how far observed is from expected."""

from __future__ import annotations

import math
from typing import Any

from .style import AFTER, BEFORE, dress, ink, legend, named, new_figure, refuse_other

MOST = 15  # streams that can be read in one panel
_ABOVE = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "ncols": 3, "borderpad": 0.1}
_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
WIDE = 10  # letters of names of batches that fit side by side
CAP = 12.0  # decades of evidence that are drawn: more proves nothing more


def monitor(found: Any, *, figure: Any = None) -> Any:
    """Draw a `calibrant.monitoring.Monitor`, and return the figure.

    Above, the evidence against the probabilities, on its way to the alarm at 1/α. Below, observed less expected a row:
    batch by batch (marks, with twice the standard error if the probabilities are true), and over all batches so far
    with its confidence sequence (band). With classes or groups, a third panel has a line for each.

    Parameters
    ----------
    found : Monitor
    figure : matplotlib Figure, optional
        Else a new one of pyplot: ``plt.show()`` shows it.
    """
    refuse_other(found, "findings", "a Monitor")
    told = found.findings()
    several = len(told.streams) > 1
    shown = min(len(told.streams), MOST)
    if figure is None:
        figure = new_figure((7.2, 5.2 + (0.5 + 0.22 * shown if several else 0)))
    heights = [1.0, 1.1, *([0.35 + 0.1 * shown] if several else [])]
    panels = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    panels[1].sharex(panels[0])
    _evidence(panels[0], found, told)
    _gaps(panels[1], found, told)
    if several:
        _streams(panels[2], told)
    for ax in panels:
        dress(ax)
    return figure


def _evidence(ax: Any, found: Any, told: Any) -> None:
    points = [point for point in found.history() if point.log_e is not None]
    level = math.log10(1 / told.alpha)
    heights = [min(point.log_e / math.log(10), CAP) for point in points]
    ax.plot([point.batch for point in points], heights, color=AFTER, marker=".", label="evidence")
    ax.axhline(level, color=BEFORE, linestyle="--", linewidth=1, label=f"alarm at {1 / told.alpha:,.3g}")
    ax.axhline(0, color=ink(ax), linestyle=(0, (1, 2)), linewidth=0.8)
    if told.alarmed is not None:
        at = told.alarmed
        ax.plot(at.batch, min(at.log_e / math.log(10), CAP), "v", color=BEFORE, markersize=9)
        _say(ax, f"alarm: {named(at.label)}", at.batch, min(max(at.log_e / math.log(10), level), CAP))
        ax.axvspan(at.onset - 0.5, at.batch, color=BEFORE, alpha=0.12, linewidth=0)
    if heights and max(heights) == CAP:
        ax.set_ylim(top=CAP + 0.8)
        ax.set_yticks([0, 3, 6, 9, 12])
    ticks = [tick for tick in ax.get_yticks() if tick == round(tick)]
    ax.set_yticks(ticks, [_decade(int(tick)) for tick in ticks])
    ax.tick_params(labelbottom=False)
    ax.set_ylabel("evidence")
    legend(ax, **_ABOVE)


def _say(ax: Any, words: str, x: float, y: float) -> None:
    right = x > sum(ax.get_xlim()) / 2
    place = {"xytext": (-10 if right else 10, 4), "textcoords": "offset points", "va": "bottom"}
    ax.annotate(words, (x, y), ha="right" if right else "left", color=BEFORE, fontsize="small", **place)


def _decade(power: int) -> str:
    words = f"{10.0**power:,g}" if -2 <= power < 4 else "10" + str(power).translate(_POWERS)
    return f"≥ {words}" if power >= CAP else words


def _gaps(ax: Any, found: Any, told: Any) -> None:
    points = found.history()
    batches = [point.batch for point in points]
    confidence = 100 * (1 - told.alpha) if told.promise == "lifetime" else 95
    low, high = [point.low for point in points], [point.high for point in points]
    ax.fill_between(batches, low, high, color=AFTER, alpha=0.18, linewidth=0, label=f"{confidence:g} %, at all times")
    ax.plot(batches, [point.mean for point in points], color=AFTER, label="all batches so far")
    own = {"fmt": "o", "markersize": 3, "color": ink(ax), "elinewidth": 0.7, "alpha": 0.7}
    most = max((point.batches for point in points), default=1)
    name = "one batch" if most == 1 else f"up to {most:,} batches"
    ax.errorbar(batches, [p.gap for p in points], [2 * p.error for p in points], label=name, **own)
    ax.axhline(0, color=ink(ax), linestyle=(0, (1, 2)), linewidth=0.8)
    if told.alarmed is not None:
        ax.axvspan(told.alarmed.onset - 0.5, told.alarmed.batch, color=BEFORE, alpha=0.12, linewidth=0)
    reach = max((abs(p.gap) + 2 * p.error for p in points), default=1.0)
    ax.set_ylim(-1.15 * reach, 1.15 * reach)
    ax.set(xlabel="batch", ylabel="observed - expected")
    ax.xaxis.get_major_locator().set_params(integer=True)
    names = {point.batch: named(point.label) for point in points}
    if most == 1 and max(map(len, names.values()), default=0) <= WIDE:  # as alarms are named, not as they are counted
        ax.xaxis.set_major_formatter(lambda at, _: names.get(at, ""))
    legend(ax, **_ABOVE)


def _streams(ax: Any, told: Any) -> None:
    shown = told.streams[:MOST][::-1]
    for place, one in enumerate(shown):
        colour = BEFORE if one.blamed else AFTER
        ax.plot([one.low, one.high], [place, place], color=colour, linewidth=1.4)
        ax.plot(one.gap, place, "s" if one.blamed else "o", color=colour, markersize=5)
    ax.axvline(0, color=ink(ax), linestyle=(0, (1, 2)), linewidth=0.8)
    ax.set_ylim(-0.6, len(shown) - 0.4)
    names = [named(one.name) + (" (alarm)" if one.blamed else "") for one in shown]
    ax.set_yticks(range(len(shown)), names, fontsize="small")
    rest = len(told.streams) - len(shown)
    ax.set_xlabel("observed - expected a row, all batches" + (f"; {rest} more not shown" if rest else ""))
