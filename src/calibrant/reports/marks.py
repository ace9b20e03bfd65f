"""Inline SVG drawn from curve objects. Colours are CSS variables, so that light, dark and print each have their own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from ..metrics.estimators.curves import ReliabilityCurve, count_ticks
from ..plain import plain
from ..selection import Comparison
from ..selection.result import Curve
from ..types import Array

_LEFT, _TOP, _SIDE, _STRIP = 52, 42, 260, 44
SIZE = (_LEFT + _SIDE + 12, _TOP + _SIDE + _STRIP + 44)
_BASE = _TOP + _SIDE + _STRIP + 6  # where the bars of the histogram stand
MAP = (0, _TOP - 12, _LEFT + _SIDE + 12, _SIDE + 56)  # the curve of a map: no histogram
INSIDE = (_LEFT - 4, _TOP - 4, _SIDE + 8, _SIDE + _STRIP + 14)  # what small multiples show: no words


def in_script(told: dict[str, Any]) -> Markup:
    """Return numbers as JSON that can stand inside a script element."""
    text = json.dumps(plain(told, 6), ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def _x(value: float) -> str:
    return f"{round(_LEFT + _SIDE * float(value), 1):g}"


def _y(value: float) -> str:
    return f"{round(_TOP + _SIDE * (1 - float(value)), 1):g}"


def reliability_marks(
    before: ReliabilityCurve, after: ReliabilityCurve | None, corner: Sequence[str] = (), span: float = 1.0
) -> Markup:
    """Return the marks of a reliability diagram, to be drawn over `frame_marks`: before hollow, after filled.

    ``span`` is where the axes end: what lies beyond is left out.
    """
    if span < 1:
        before, after = _within(before, span), None if after is None else _within(after, span)
    most = max(float(curve.counts.max()) for curve in (before, after) if curve is not None)
    parts = [_count_axis(most)]
    for name, curve in (("before", before), ("after", after)):
        if curve is not None:
            parts.append(
                f'<g class="{name}">{_corp(curve)}{_bins(curve, name, span)}{_histogram(curve, most, span)}</g>'
            )
    # Each line of a pair has the colour of its marks.
    words = ("before", "after") if len(corner) > 1 else ("",) * len(corner)
    for i, (line, name) in enumerate(zip(corner, words, strict=True)):
        place = f'x="{_LEFT}" y="{_TOP - 22 + 14 * i}"'
        parts.append(f'<text class="corner {name}" {place}>{escape(f"{name} {line}".strip())}</text>')
    return Markup("".join(parts))


def _within(curve: ReliabilityCurve, span: float) -> ReliabilityCurve:
    """Return the curve of scores up to ``span``, in units of it; what is higher ends at the upper edge."""
    bins, steps = curve.binned, curve.isotonic
    near, low = bins.score <= span, steps.left <= span
    short = {name: np.minimum(getattr(bins, name)[near] / span, 1) for name in ("score", "frequency", "low", "high")}
    steps = replace(
        steps,
        left=steps.left[low] / span,
        right=np.minimum(steps.right[low] / span, 1),
        level=np.minimum(steps.level[low] / span, 1),
    )
    seen = curve.edges[1:] <= span + 1e-9
    edges = np.append(curve.edges[:-1][seen], curve.edges[1:][seen][-1:]) / span
    return replace(
        curve,
        binned=replace(bins, weight=bins.weight[near], **short),
        isotonic=steps,
        edges=edges,
        counts=curve.counts[seen],
    )


def frame_marks(span: float = 1.0) -> Markup:
    """Return what all reliability diagrams have in common: grid, axes and diagonal."""
    grid = _grid(_TOP + _SIDE + _STRIP + 22, span)
    return Markup("".join([grid, *_axis_names(SIZE[1] - 4, "probability said", "share that came true")]))


def _grid(below: float, span: float = 1.0) -> str:
    """Lines and numbers at quarters, those of the horizontal axis at a given height, and the diagonal."""
    quarters = (0, 0.25, 0.5, 0.75, 1)
    lines = "".join(
        f'<line class="grid" x1="{_x(t)}" x2="{_x(t)}" y1="{_y(0)}" y2="{_y(1)}"/>'
        f'<line class="grid" x1="{_x(0)}" x2="{_x(1)}" y1="{_y(t)}" y2="{_y(t)}"/>'
        for t in quarters
    )
    numbers = "".join(
        f'<text x="{_LEFT - 6}" y="{float(_y(t)) + 4:.1f}" text-anchor="end">{span * t:g}</text>'
        f'<text x="{_x(t)}" y="{below}" text-anchor="middle">{span * t:g}</text>'
        for t in (quarters if span == 1 else quarters[::2])  # halves are short numbers
    )
    return f'{lines}{numbers}<line class="diagonal" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>'


def _axis_names(below: float, across: str, up: str) -> list[str]:
    middle = f"translate(11 {_TOP + _SIDE / 2}) rotate(-90)"
    return [
        f'<text x="{_LEFT + _SIDE / 2}" y="{below}" text-anchor="middle">{across}</text>',
        f'<text transform="{middle}" text-anchor="middle">{up}</text>',
    ]


def map_marks(places: Array, curves: Mapping[str, Array]) -> Markup:
    """Return the inside of an SVG of the size of a reliability diagram: what a map answers to what is said."""
    if not curves:
        return Markup("")
    parts = [_grid(_TOP + _SIDE + 18), *_axis_names(_TOP + _SIDE + 38, "probability said", "probability answered")]
    for i, (name, answers) in enumerate(curves.items()):
        points = " ".join(f"{_x(p)},{_y(q)}" for p, q in zip(places, answers, strict=True))
        parts.append(f'<polyline class="line line{i % 6}" points="{points}"><title>{escape(name)}</title></polyline>')
        parts.append(f'<text class="name{i % 6}" x="{_LEFT + 10}" y="{_TOP + 18 + 15 * i}">{escape(name)}</text>')
    return Markup("".join(parts))


def _corp(curve: ReliabilityCurve) -> str:
    steps = curve.isotonic
    points = [f"{_x(s)},{_y(v)}" for a, b, v in zip(steps.left, steps.right, steps.level, strict=True) for s in (a, b)]
    return f'<polyline class="corp" points="{" ".join(dict.fromkeys(points))}"/>'


def _bins(curve: ReliabilityCurve, name: str, span: float) -> str:
    bins, marks = curve.binned, []
    for weight, score, share, low, high in zip(
        bins.weight, bins.score, bins.frequency, bins.low, bins.high, strict=True
    ):
        said, true, least, most = (span * value for value in (score, share, low, high))
        words = f"{name}: says {said:.3f}, true {true:.3f} [{least:.3f}, {most:.3f}], {weight:g} rows"
        shape = f'<circle cx="{_x(score)}" cy="{_y(share)}" r="4"/>'
        if name == "after":
            shape = f'<rect x="{float(_x(score)) - 3.5:.1f}" y="{float(_y(share)) - 3.5:.1f}" width="7" height="7"/>'
        whisker = f'<line class="whisker" x1="{_x(score)}" x2="{_x(score)}" y1="{_y(low)}" y2="{_y(high)}"/>'
        marks.append(f'<g class="bin">{whisker}{shape}<title>{words}</title></g>')
    return "".join(marks)


def _histogram(curve: ReliabilityCurve, most: float, span: float) -> str:
    """How many rows say what, as bars on a square-root scale, so that small counts are seen."""
    bars = []
    for left, right, count in zip(curve.edges[:-1], curve.edges[1:], curve.counts, strict=True):
        if count > 0:
            top = _count_place(float(count), most)
            width = float(_x(right)) - float(_x(left))
            who = "1 row says" if count == 1 else f"{count:g} rows say"
            title = f"<title>{who} {span * left:.2f} to {span * right:.2f}</title>"
            bars.append(
                f'<rect x="{_x(left)}" y="{top:.1f}" width="{width:.1f}" height="{_BASE - top:.1f}">{title}</rect>'
            )
    return f'<g class="histogram">{"".join(bars)}</g>'


def _count_place(count: float, most: float) -> float:
    """Where the bar of so many rows ends."""
    return _BASE - (_STRIP - 4) * float(np.sqrt(count / max(most, 1e-300)))


def _count_axis(most: float) -> str:
    """Numbers of rows beside the bars."""
    parts = []
    for tick in count_ticks(most, "sqrt"):
        y, words = _count_place(tick, most), f"{tick:,.0f}" if tick >= 1 else f"{tick:.2g}"
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_LEFT + _SIDE}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="count" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{words}</text>')
    return "".join(parts)


def _scale(values: Iterable[float], low: float, high: float) -> tuple[float, float]:
    finite = [v for v in values if np.isfinite(v)]
    bottom, top = min(finite, default=0.0), max(finite, default=1.0)
    width = (top - bottom) or 1.0
    return (high - low) / (width * 1.1), low - (bottom - 0.05 * width) * (high - low) / (width * 1.1)


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About ``count`` round numbers between two others."""
    step = (high - low) / count
    size = 10.0 ** np.floor(np.log10(step))
    step = size * min((f for f in (1, 2, 5, 10) if f * size >= step), default=10)
    return [float(t) for t in np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step]


def comparison_marks(found: Comparison, metric: str) -> tuple[Markup, int]:
    """Return the inside of an SVG and its height: `Comparison.differences`, map by map."""
    reference, pairs = found.differences(metric)
    rows, gaps = [row for row, _ in pairs], [gap for _, gap in pairs]
    ends = [0.0, *(g.low for g in gaps), *(g.high for g in gaps)]
    factor, shift = _scale(ends, 150, 600)
    height, parts = 24 * len(rows) + 46, []
    for tick in _ticks(-shift / factor + 150 / factor, (600 - shift) / factor):
        x, line = factor * tick + shift, "diagonal" if tick == 0 else "grid"
        parts.append(f'<line class="{line}" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{height - 34}"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 20}" text-anchor="middle">{tick:.4g}</text>')
    for i, (row, gap) in enumerate(zip(rows, gaps, strict=True)):
        y, chosen = 16 + 24 * i, " chosen" if row.name == found.best_ else ""
        x, a, b = (factor * v + shift for v in (gap.value, gap.low, gap.high))
        words = f"{row.name}: {gap.value:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}]"
        parts.append(
            f'<g class="bin after{chosen}"><text x="142" y="{y + 4}" text-anchor="end">{escape(row.name)}</text>'
            f'<line class="whisker" x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}"/>'
            f'<circle cx="{x:.1f}" cy="{y}" r="5"/><title>{escape(words)}</title></g>'
        )
    words = f"{metric}, difference to {reference}: left is better"
    parts.append(f'<text x="375" y="{height - 4}" text-anchor="middle">{escape(words)}</text>')
    return Markup("".join(parts)), height


def learning_marks(curves: Sequence[Curve]) -> Markup:
    """Return the inside of an SVG (600 × 300): held-out loss against the rows fitted on, on a logarithmic axis."""
    sizes = sorted({s for c in curves for s in c.sizes})
    values = [e.value for c in curves for e in c.estimates if np.isfinite(e.value)]
    fx, sx = _scale([float(np.log(s)) for s in sizes], 60, 470)
    fy, sy = _scale(values, -260, -10)
    parts = [f'<text x="{fx * np.log(s) + sx:.1f}" y="282" text-anchor="middle">{s:,}</text>' for s in sizes]
    parts.append('<text x="265" y="298" text-anchor="middle">rows to fit on</text>')
    for tick in _ticks((-260 - sy) / fy, (-10 - sy) / fy):
        y = -(fy * tick + sy)
        parts.append(f'<line class="grid" x1="60" x2="470" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="54" y="{y + 4:.1f}" text-anchor="end">{tick:.4g}</text>')
    ends: list[tuple[float, int, str]] = []
    for i, curve in enumerate(curves):
        points = [
            (fx * float(np.log(size)) + sx, -(fy * e.value + sy), size, e)
            for size, e in zip(curve.sizes, curve.estimates, strict=True)
            if np.isfinite(e.value)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in points)
        parts.append(f'<polyline class="line line{i % 6}" points="{path}"/>')
        for x, y, size, estimate in points:
            words = escape(f"{curve.name}, {size} rows: {estimate}")
            parts.append(
                f'<circle class="dot{i % 6}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{words}</title></circle>'
            )
        if points:
            ends.append((points[-1][1], i, curve.name))
    return Markup("".join([*parts, *_end_labels(ends)]))


def _end_labels(ends: list[tuple[float, int, str]]) -> list[str]:
    """The names at the right ends of lines, moved apart where they would overlap, each with a leader to its line."""
    parts, step = [], 13.0
    places = []
    for y, _, _ in sorted(ends):
        places.append(max(y, places[-1] + step) if places else y)
    over = max(0.0, places[-1] - 262) if places else 0.0
    for (y, i, name), place in zip(sorted(ends), places, strict=True):
        at = max(10.0, place - over)
        parts.append(f'<line class="leader" x1="456" x2="482" y1="{y:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text class="name{i % 6}" x="485" y="{at + 4:.1f}">{escape(name)}</text>')
    return parts
