"""Inline SVG of what profiles add: a smooth curve with its band, a decision curve, gaps by group."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup, escape

from ..metrics.decisions.net_benefit import DecisionCurve
from ..metrics.estimators.curves import SmoothCurve
from ..metrics.inference.group_test import GroupFindings
from ..types import Array

_LEFT, _TOP, _WIDE, _HIGH, _STRIP = 62, 12, 380, 300, 70
_SPANS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0)


def _scale(low: float, high: float, start: float, length: float) -> tuple[float, float]:
    factor = length / (high - low)
    return start - low * factor, factor


def _path(x: Array, y: Array) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def _round(value: float) -> str:
    return f"{value:.2g}"


def shown_span(curve: SmoothCurve) -> float:
    """Return where the axes of a smooth curve end: 99 % of the rows lie before it."""
    rows = curve.yes + curve.no
    reached = (np.searchsorted(np.cumsum(rows), 0.99 * rows.sum()) + 1) / len(rows)
    return next(s for s in _SPANS if reached <= s + 1e-9)


def smooth_marks(curve: SmoothCurve) -> tuple[Markup, str]:
    """Return the smooth curve with its band, the diagonal, and rows by outcome below; and the size."""
    span = shown_span(curve)
    x0, fx = _scale(0, span, _LEFT, _WIDE)
    y0, fy = _scale(0, span, _TOP + _HIGH, -_HIGH)
    seen = curve.score <= span
    x, mid, low, high = (values[seen] for values in (x0 + fx * curve.score, curve.frequency, curve.low, curve.high))
    mid, low, high = (y0 + fy * np.clip(values, 0, span) for values in (mid, low, high))
    parts = []
    for t in np.linspace(0, span, 5).tolist():
        a, b = x0 + fx * t, y0 + fy * t
        parts.append(f'<line class="grid" x1="{a:.1f}" x2="{a:.1f}" y1="{_TOP}" y2="{_TOP + _HIGH}"/>')
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_LEFT + _WIDE}" y1="{b:.1f}" y2="{b:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{b + 4:.1f}" text-anchor="end">{_round(t)}</text>')
        parts.append(f'<text x="{a:.1f}" y="{_TOP + _HIGH + _STRIP + 22}" text-anchor="middle">{_round(t)}</text>')
    parts.append(f'<line class="diagonal" x1="{_LEFT}" y1="{_TOP + _HIGH}" x2="{_LEFT + _WIDE}" y2="{_TOP}"/>')
    band = _path(np.r_[x, x[::-1]], np.r_[low, high[::-1]])
    parts.append(f'<path class="band" d="{band}Z"/><path class="line line0" d="{_path(x, mid)}"/>')
    parts.append(_outcomes(curve, span))
    below = _TOP + _HIGH + _STRIP + 40
    parts.append(f'<text x="{_LEFT + _WIDE / 2}" y="{below}" text-anchor="middle">probability said</text>')
    turn = f"translate(12 {_TOP + _HIGH / 2}) rotate(-90)"
    parts.append(f'<text transform="{turn}" text-anchor="middle">share that came true</text>')
    return Markup("".join(parts)), f"0 0 {_LEFT + _WIDE + 14} {below + 6}"


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
        x = _LEFT + i * wide
        for kind, count in (("yes", yes), ("no", no)):
            tall = half * (count / most) ** 0.5
            y = middle - tall if kind == "yes" else middle
            if count > 0:
                parts.append(
                    f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(wide - 1, 0.5):.1f}" '
                    f'height="{tall:.1f}">'
                    f"<title>{i * step:.2f} to {(i + 1) * step:.2f}: {yes:,.0f} yes, {no:,.0f} no</title></rect>"
                )
    words = f'<text class="count" x="{_LEFT - 4}" y="{middle - 8}" text-anchor="end">yes</text>'
    return "".join(parts) + words + f'<text class="count" x="{_LEFT - 4}" y="{middle + 16}" text-anchor="end">no</text>'


def decision_marks(curve: DecisionCurve) -> tuple[Markup, str]:
    """Return net benefit over thresholds with its band, beside acting always and never; and the size."""
    best = float(max(curve.net_benefit.max(), curve.treat_all.max(), 1e-3))
    useful = np.flatnonzero(curve.net_benefit > 0.02 * best)
    reached = float(curve.thresholds[useful[-1]]) if len(useful) else 1.0
    span = next(s for s in _SPANS if reached <= s + 1e-9)
    top, least = 1.1 * max(best, float(curve.high[curve.thresholds <= span].max())), -0.15 * best
    x0, fx = _scale(0, span, _LEFT, _WIDE)
    y0, fy = _scale(least, top, _TOP + _HIGH, -_HIGH)
    seen = curve.thresholds <= span + 1e-9
    x = x0 + fx * curve.thresholds[seen]
    value, low, high, everyone = (
        y0 + fy * np.clip(values[seen], least, top)
        for values in (curve.net_benefit, curve.low, curve.high, curve.treat_all)
    )
    parts = []
    for t in np.linspace(0, span, 5).tolist():
        a = x0 + fx * t
        parts.append(f'<line class="grid" x1="{a:.1f}" x2="{a:.1f}" y1="{_TOP}" y2="{_TOP + _HIGH}"/>')
        parts.append(f'<text x="{a:.1f}" y="{_TOP + _HIGH + 18}" text-anchor="middle">{_round(t)}</text>')
    for v in (0.0, best / 2, best):
        b = y0 + fy * v
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_LEFT + _WIDE}" y1="{b:.1f}" y2="{b:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{b + 4:.1f}" text-anchor="end">{_round(v)}</text>')
    band = _path(np.r_[x, x[::-1]], np.r_[low, high[::-1]])
    parts.append(f'<path class="band" d="{band}Z"/><path class="line line0" d="{_path(x, value)}"/>')
    parts.append(f'<path class="line line1" d="{_path(x, everyone)}"/>')
    zero = y0
    parts.append(f'<line class="never" x1="{_LEFT}" x2="{_LEFT + _WIDE}" y1="{zero:.1f}" y2="{zero:.1f}"/>')
    parts.append(_key(_LEFT + _WIDE - 168, _TOP + 8))
    below = _TOP + _HIGH + 36
    parts.append(f'<text x="{_LEFT + _WIDE / 2}" y="{below}" text-anchor="middle">threshold at which one acts</text>')
    turn = f"translate(12 {_TOP + _HIGH / 2}) rotate(-90)"
    parts.append(f'<text transform="{turn}" text-anchor="middle">net benefit, a row</text>')
    return Markup("".join(parts)), f"0 0 {_LEFT + _WIDE + 14} {below + 6}"


def _key(x: float, y: float) -> str:
    lines = (("line line0", "by these probabilities"), ("line line1", "act always"), ("never", "act never"))
    return "".join(
        f'<line class="{kind}" x1="{x}" x2="{x + 26}" y1="{y + 16 * i}" y2="{y + 16 * i}"/>'
        f'<text x="{x + 32}" y="{y + 16 * i + 4}">{words}</text>'
        for i, (kind, words) in enumerate(lines)
    )


def group_marks(found: GroupFindings) -> tuple[Markup, str]:
    """Return the gap of each group with its interval, in order of the gap; and the size."""
    rows = sorted(found.rows, key=lambda row: row.gap)
    most = max(0.01, *(max(abs(row.low), abs(row.high)) for row in rows))
    left, wide, step = 170, 400, 22
    x0, fx = _scale(-most, most, left, wide)
    high = step * len(rows) + 8
    parts = [f'<line class="diagonal" x1="{x0:.1f}" x2="{x0:.1f}" y1="4" y2="{high}"/>']
    for i, row in enumerate(rows):
        y = step * i + 18
        kind = "before" if row.low > 0 or row.high < 0 else "after"
        name = row.name if len(row.name) < 25 else row.name[:23] + "…"
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(name)}</text>')
        parts.append(
            f'<g class="{kind}"><line class="whisker" x1="{x0 + fx * row.low:.1f}" x2="{x0 + fx * row.high:.1f}" '
            f'y1="{y}" y2="{y}"/><g class="bin"><circle cx="{x0 + fx * row.gap:.1f}" cy="{y}" r="4"/></g></g>'
        )
    for t in (-most, 0.0, most):
        parts.append(f'<text x="{x0 + fx * t:.1f}" y="{high + 16}" text-anchor="middle">{t:+.3f}</text>')
    words = "seen less said: right of the line events happen more often"
    parts.append(f'<text x="{left + wide / 2}" y="{high + 34}" text-anchor="middle">{words}</text>')
    return Markup("".join(parts)), f"0 0 {left + wide + 40} {high + 42}"
