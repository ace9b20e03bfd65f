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
from .svg import across, along, box, circle, line, polyline, text, titled, turned, upright

_LEFT, _TOP, _SIDE, _STRIP = 52, 42, 260, 44
SIZE = (_LEFT + _SIDE + 12, _TOP + _SIDE + _STRIP + 44)
_BASE = _TOP + _SIDE + _STRIP + 6  # where the bars of the histogram stand
MAP = (0, _TOP - 12, _LEFT + _SIDE + 12, _SIDE + 56)  # the curve of a map: no histogram
INSIDE = (_LEFT - 4, _TOP - 4, _SIDE + 8, _SIDE + _STRIP + 14)  # what small multiples show: no words


def in_script(told: dict[str, Any]) -> Markup:
    """Return numbers as JSON that can stand inside a script element."""
    written = json.dumps(plain(told, 6), ensure_ascii=False, separators=(",", ":"))
    return Markup(written.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


_x = along(0, 1, _LEFT, _LEFT + _SIDE)
_y = along(0, 1, _TOP + _SIDE, _TOP)


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
    for i, (told, name) in enumerate(zip(corner, words, strict=True)):
        place = f'x="{_LEFT}" y="{_TOP - 22 + 14 * i}"'
        parts.append(f'<text class="corner {name}" {place}>{escape(f"{name} {told}".strip())}</text>')
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
    return Markup(grid + _axis_names(SIZE[1] - 4, "probability said", "share that came true"))


def _grid(below: float, span: float = 1.0) -> str:
    """Lines and numbers at quarters, those of the horizontal axis at a given height, and the diagonal."""
    quarters = (0, 0.25, 0.5, 0.75, 1)
    parts = []
    for t in quarters:
        parts.append(upright("grid", _x(t), _y(0), _y(1)))
        parts.append(across("grid", _y(t), _x(0), _x(1)))
    for t in quarters if span == 1 else quarters[::2]:  # halves are short numbers
        parts.append(text(f"{span * t:g}", _LEFT - 6, _y(t) + 4, "end"))
        parts.append(text(f"{span * t:g}", _x(t), below))
    return "".join([*parts, line("diagonal", (_x(0), _x(1)), (_y(0), _y(1)))])


def _axis_names(below: float, horizontal: str, vertical: str) -> str:
    return text(horizontal, _LEFT + _SIDE / 2, below) + turned(vertical, 11, _TOP + _SIDE / 2)


def map_marks(places: Array, curves: Mapping[str, Array]) -> Markup:
    """Return the inside of an SVG of the size of a reliability diagram: what a map answers to what is said."""
    if not curves:
        return Markup("")
    parts = [_grid(_TOP + _SIDE + 18), _axis_names(_TOP + _SIDE + 38, "probability said", "probability answered")]
    for i, (name, answers) in enumerate(curves.items()):
        parts.append(polyline(f"line line{i % 6}", _x(places), _y(answers), name))
        parts.append(text(name, _LEFT + 10, _TOP + 18 + 15 * i, "start", f"name{i % 6}"))
    return Markup("".join(parts))


def _corp(curve: ReliabilityCurve) -> str:
    steps = curve.isotonic
    ends = np.column_stack([steps.left, steps.right]).ravel()
    return polyline("corp", _x(ends), _y(np.repeat(steps.level, 2)))


def _bins(curve: ReliabilityCurve, name: str, span: float) -> str:
    bins, marks = curve.binned, []
    columns = (bins.weight, bins.score, bins.frequency, bins.low, bins.high)
    for weight, score, share, low, high in zip(*columns, strict=True):
        said, true, least, most = (span * value for value in (score, share, low, high))
        words = f"{name}: says {said:.3f}, true {true:.3f} [{least:.3f}, {most:.3f}], {weight:g} rows"
        x, y = _x(score), _y(share)
        shape = box(x - 3.5, y - 3.5, 7, 7) if name == "after" else circle(x, y, 4)
        marks.append(f'<g class="bin">{upright("whisker", x, _y(low), _y(high))}{shape}{titled(words)}</g>')
    return "".join(marks)


def _histogram(curve: ReliabilityCurve, most: float, span: float) -> str:
    """How many rows say what, as bars on a square-root scale, so that small counts are seen."""
    bars = []
    for left, right, count in zip(curve.edges[:-1], curve.edges[1:], curve.counts, strict=True):
        if count > 0:
            top = _count_place(float(count), most)
            who = "1 row says" if count == 1 else f"{count:g} rows say"
            words = f"{who} {span * left:.2f} to {span * right:.2f}"
            bars.append(box(_x(left), top, _x(right) - _x(left), _BASE - top, title=words))
    return f'<g class="histogram">{"".join(bars)}</g>'


def _count_place(count: float, most: float) -> float:
    """Where the bar of so many rows ends."""
    return _BASE - (_STRIP - 4) * float(np.sqrt(count / max(most, 1e-300)))


def _count_axis(most: float) -> str:
    """Numbers of rows beside the bars."""
    parts = []
    for tick in count_ticks(most, "sqrt"):
        y, words = _count_place(tick, most), f"{tick:,.0f}" if tick >= 1 else f"{tick:.2g}"
        parts.append(across("grid", y, _LEFT, _LEFT + _SIDE))
        parts.append(text(words, _LEFT - 6, y + 4, "end", "count"))
    return "".join(parts)


def _reach(values: Iterable[float]) -> tuple[float, float]:
    """Return where an axis begins and ends: a twentieth beyond the numbers on it."""
    finite = [v for v in values if np.isfinite(v)]
    bottom, top = min(finite, default=0.0), max(finite, default=1.0)
    beyond = 0.05 * ((top - bottom) or 1.0)
    return bottom - beyond, top + beyond


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About ``count`` round numbers between two others."""
    step = (high - low) / count
    size = 10.0 ** np.floor(np.log10(step))
    step = size * min((f for f in (1, 2, 5, 10) if f * size >= step), default=10)
    return [float(t) for t in np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step]


def comparison_marks(found: Comparison, metric: str) -> tuple[Markup, int]:
    """Return the inside of an SVG and its height: `Comparison.differences`, map by map."""
    reference, pairs = found.differences(metric)
    low, high = _reach([0.0, *(gap.low for _, gap in pairs), *(gap.high for _, gap in pairs)])
    place, height, parts = along(low, high, 150, 600), 24 * len(pairs) + 46, []
    for tick in _ticks(low, high):
        parts.append(upright("diagonal" if tick == 0 else "grid", place(tick), 4, height - 34))
        parts.append(text(f"{tick:.4g}", place(tick), height - 20))
    for i, (row, gap) in enumerate(pairs):
        y, chosen = 16 + 24 * i, " chosen" if row.name == found.best_ else ""
        whisker = across("whisker", y, place(gap.low), place(gap.high))
        told = titled(f"{row.name}: {gap.value:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}]")
        shape = f"{text(row.name, 142, y + 4, 'end')}{whisker}{circle(place(gap.value), y, 5)}{told}"
        parts.append(f'<g class="bin after{chosen}">{shape}</g>')
    parts.append(text(f"{metric}, difference to {reference}: left is better", 375, height - 4))
    return Markup("".join(parts)), height


def learning_marks(curves: Sequence[Curve]) -> Markup:
    """Return the inside of an SVG (600 × 300): held-out loss against the rows fitted on, on a logarithmic axis."""
    sizes = sorted({s for c in curves for s in c.sizes})
    low, high = _reach(e.value for c in curves for e in c.estimates)
    x, y = along(*_reach(np.log(sizes)), 60, 470), along(low, high, 260, 10)
    parts = [text(f"{size:,}", x(np.log(size)), 282) for size in sizes]
    parts.append(text("rows to fit on", 265, 298))
    for tick in _ticks(low, high):
        parts.append(across("grid", y(tick), 60, 470))
        parts.append(text(f"{tick:.4g}", 54, y(tick) + 4, "end"))
    ends: list[tuple[float, int, str]] = []
    for i, curve in enumerate(curves):
        known = [(s, e) for s, e in zip(curve.sizes, curve.estimates, strict=True) if np.isfinite(e.value)]
        parts.append(polyline(f"line line{i % 6}", [x(np.log(s)) for s, _ in known], [y(e.value) for _, e in known]))
        for size, estimate in known:
            told = f"{curve.name}, {size} rows: {estimate}"
            parts.append(circle(x(np.log(size)), y(estimate.value), 3.5, f"dot{i % 6}", told))
        if known:
            ends.append((y(known[-1][1].value), i, curve.name))
    return Markup("".join([*parts, *_end_labels(ends)]))


def _end_labels(ends: list[tuple[float, int, str]]) -> list[str]:
    """The names at the right ends of lines, moved apart where they would overlap, each with a leader to its line."""
    parts, step = [], 13.0
    places = []
    for y, _, _ in sorted(ends):
        places.append(max(y, places[-1] + step) if places else y)
    over = max(0.0, places[-1] - 262) if places else 0.0
    for (y, i, name), place in zip(sorted(ends), places, strict=True):
        end = max(10.0, place - over)
        parts.append(line("leader", (456, 482), (y, end)))
        parts.append(text(name, 485, end + 4, "start", f"name{i % 6}"))
    return parts
