"""Inline SVG of what profiles add: a smooth curve with its band, a decision curve, gaps by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from ..metrics.decisions.net_benefit import DecisionCurve
from ..metrics.estimators.curves import SmoothCurve
from ..metrics.inference.group_test import GroupFindings
from .svg import across, along, band, box, circle, line, polyline, text, turned, upright

_LEFT, _TOP, _WIDE, _HIGH, _STRIP = 62, 12, 380, 300, 70
Place = Callable[[Any], Any]  # where a value stands
_SPANS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0)


def shown_span(curve: SmoothCurve) -> float:
    """Return where the axes of a smooth curve end: 99 % of the rows lie before it."""
    rows = curve.yes + curve.no
    reached = (np.searchsorted(np.cumsum(rows), 0.99 * rows.sum()) + 1) / len(rows)
    return next(s for s in _SPANS if reached <= s + 1e-9)


def smooth_marks(curve: SmoothCurve) -> tuple[Markup, str]:
    """Return the smooth curve with its band, the diagonal, and rows by outcome below; and the size."""
    span = shown_span(curve)
    x, y = along(0, span, _LEFT, _LEFT + _WIDE), along(0, span, _TOP + _HIGH, _TOP)
    seen = curve.score <= span
    at = x(curve.score[seen])
    mid, low, high = (y(values[seen]) for values in (curve.frequency, curve.low, curve.high))
    ticks = np.linspace(0, span, 5).tolist()
    parts = [
        _frame(x, ticks, y, ticks, _STRIP, ("probability said", "share that came true")),
        line("diagonal", (_LEFT, _LEFT + _WIDE), (_TOP + _HIGH, _TOP)),
        _inside("curve", band(at, low, high), polyline("line line0", at, mid)),
        _outcomes(curve, span),
    ]
    return Markup("".join(parts)), _size(_STRIP)


def _frame(
    x: Place, across_at: Sequence[float], y: Place, up_at: Sequence[float], strip: float, words: tuple[str, str]
) -> str:
    """The grid with its numbers, and the names of both axes; a strip may lie between them and what they name."""
    bottom, parts = _TOP + _HIGH, []
    for tick in across_at:
        parts.append(upright("grid", x(tick), _TOP, bottom))
        parts.append(text(f"{tick:.3g}", x(tick), bottom + strip + 22))
    for tick in up_at:
        parts.append(across("grid", y(tick), _LEFT, _LEFT + _WIDE))
        parts.append(text(f"{tick:.3g}", _LEFT - 6, y(tick) + 4, "end"))
    parts.append(text(words[0], _LEFT + _WIDE / 2, bottom + strip + 40))
    return "".join([*parts, turned(words[1], 12, _TOP + _HIGH / 2)])


def _inside(chart: str, *parts: str) -> str:
    """Return lines cut where they leave the frame: along its edge they would be read as values."""
    clip = f'<clipPath id="inside-{chart}">{box(_LEFT, _TOP, _WIDE, _HIGH)}</clipPath>'
    return f'{clip}<g clip-path="url(#inside-{chart})">{"".join(parts)}</g>'


def _size(strip: float) -> str:
    return f"0 0 {_LEFT + _WIDE + 14} {_TOP + _HIGH + strip + 46}"


def _outcomes(curve: SmoothCurve, span: float) -> str:
    """Bars of the rows whose event happened, upwards, and of the others, downwards; square-root scale."""
    middle, half = _TOP + _HIGH + 6 + _STRIP / 2, _STRIP / 2 - 4
    step = 1 / len(curve.yes)
    most = max(float(curve.yes.max()), float(curve.no.max()), 1.0)
    wide = _WIDE * step / span
    parts = []
    for i, (yes, no) in enumerate(zip(curve.yes.tolist(), curve.no.tolist(), strict=True)):
        if i * step >= span - 1e-9:
            break
        told = f"{i * step:.2f} to {(i + 1) * step:.2f}: {yes:,.0f} yes, {no:,.0f} no"
        for kind, count in (("yes", yes), ("no", no)):
            tall = half * (count / most) ** 0.5
            y = middle - tall if kind == "yes" else middle
            if count > 0:
                inside = min(wide - 1, _WIDE - i * wide)  # the last may end behind the axis
                parts.append(box(_LEFT + i * wide, y, max(inside, 0.5), tall, kind, told))
    parts += [text("yes", _LEFT - 4, middle - 8, "end", "count"), text("no", _LEFT - 4, middle + 16, "end", "count")]
    return "".join(parts)


def decision_marks(curve: DecisionCurve) -> tuple[Markup, str]:
    """Return net benefit over thresholds with its band, beside acting always and never; and the size."""
    best = float(max(curve.net_benefit.max(), curve.treat_all.max(), 1e-3))
    useful = np.flatnonzero(curve.net_benefit > 0.02 * best)
    reached = float(curve.thresholds[useful[-1]]) if len(useful) else 1.0
    span = next(s for s in _SPANS if reached <= s + 1e-9)
    top, least = 1.1 * max(best, float(curve.high[curve.thresholds <= span].max())), -0.15 * best
    x, y = along(0, span, _LEFT, _LEFT + _WIDE), along(least, top, _TOP + _HIGH, _TOP)
    seen = curve.thresholds <= span + 1e-9
    at = x(curve.thresholds[seen])
    lines = (curve.net_benefit, curve.low, curve.high, curve.treat_all)
    value, low, high, everyone = (y(values[seen]) for values in lines)
    words = ("threshold at which one acts", "net benefit, a row")
    parts = [
        _frame(x, np.linspace(0, span, 5).tolist(), y, (0.0, best / 2, best), -4, words),
        _inside(
            "decisions", band(at, low, high), polyline("line line0", at, value), polyline("line line1", at, everyone)
        ),
        across("never", y(0.0), _LEFT, _LEFT + _WIDE),
        _key(_LEFT + _WIDE - 168, _TOP + 8),
    ]
    return Markup("".join(parts)), _size(-4)


def _key(x: float, y: float) -> str:
    lines = (("line line0", "by these probabilities"), ("line line1", "act always"), ("never", "act never"))
    return "".join(
        across(kind, y + 16 * i, x, x + 26) + text(words, x + 32, y + 16 * i + 4, "start")
        for i, (kind, words) in enumerate(lines)
    )


def group_marks(found: GroupFindings) -> tuple[Markup, str]:
    """Return the gap of each group with its interval, in order of the gap; and the size."""
    rows = sorted(found.rows, key=lambda row: row.gap)
    most = max(0.01, *(max(abs(row.low), abs(row.high)) for row in rows))
    left, wide, step = 170, 400, 22
    x, high = along(-most, most, left, left + wide), step * len(rows) + 8
    parts = [upright("diagonal", x(0), 4, high)]
    for i, row in enumerate(rows):
        y = step * i + 18
        kind = "before" if row.low > 0 or row.high < 0 else "after"
        name = row.name if len(row.name) < 25 else row.name[:23] + "…"
        whisker = across("whisker", y, x(row.low), x(row.high))
        parts.append(text(name, left - 8, y + 4, "end"))
        parts.append(f'<g class="{kind}">{whisker}<g class="bin">{circle(x(row.gap), y, 4)}</g></g>')
    parts += [text(f"{t:+.3f}", x(t), high + 16) for t in (-most, 0.0, most)]
    parts.append(text("seen less said: right of the line events happen more often", left + wide / 2, high + 34))
    return Markup("".join(parts)), f"0 0 {left + wide + 40} {high + 42}"
