"""The page of a monitor: verdict, evidence, gaps and streams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from .. import __version__
from ..monitoring import Findings, Monitor, Point
from .marks import in_script

LEFT, WIDTH, HEIGHT = 64, 560, 190  # of the inside of a chart
SIZE = f"0 0 {LEFT + WIDTH + 30} {HEIGHT + 52}"
CAP = 12.0  # decades of evidence that are drawn
PROMISES = {
    "lifetime": "If the null were true, this monitor would ever raise an alarm with probability {alpha:.3g} at most, "
    "however long it watches and however often one looks.",
    "run_length": "If the null were true, this monitor would raise a false alarm every {length:,.0f} batches on "
    "average, or more rarely.",
}
QUESTIONS = {
    "calibrated": "Are the probabilities true? Null: given the past, y happens with the probability p that was said.",
    "changed": "Has anything changed? Null: the rows are exchangeable; a constant error is no change.",
}


def watching_page(monitor: Monitor) -> dict[str, Any]:
    """Return what the template of a monitor needs."""
    found, points = monitor.findings(), monitor.history()
    return {
        "found": found,
        "first": points[0].first if points else "",
        "last": points[-1].label if points else "",
        "question": QUESTIONS[found.question],
        "promise": PROMISES[found.promise].format(alpha=found.alpha, length=1 / found.alpha),
        "evidence": _evidence(points, found),
        "gaps": _gaps(points, found),
        "size": SIZE,
        "streams": found.streams,
        "confidence": f"{100 * (1 - monitor.settings.level):g} %",
        "version": __version__,
        "numbers": _numbers(found, points),
    }


def _scale(low: float, high: float, start: float, end: float) -> tuple[float, float]:
    """Return factor and shift of the line that takes low to start and high to end."""
    factor = (end - start) / ((high - low) or 1.0)
    return factor, start - factor * low


def _frame(
    points: Sequence[Point], low: float, high: float, ticks: Sequence[tuple[float, str]]
) -> tuple[Any, Any, str]:
    """Return the places of batches and values, and the marks of the axes."""
    fx, sx = _scale(points[0].batch - points[0].batches, points[-1].batch + 1, LEFT, LEFT + WIDTH)
    fy, sy = _scale(low, high, HEIGHT + 10, 10)
    parts = []
    for value, words in ticks:
        y = fy * value + sy
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(words)}</text>')
    step = max(1, -(-len(points) // 6))
    for point in points[::-step][::-1]:
        words = escape(point.label if len(point.label) < 14 else point.label[:12] + "…")
        x = fx * point.batch + sx
        anchor = "middle" if x < LEFT + WIDTH - 30 else "end"  # so that the last is not cut
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT + 28}" text-anchor="{anchor}">{words}</text>')
    parts.append(f'<text x="{LEFT + WIDTH / 2}" y="{HEIGHT + 46}" text-anchor="middle">batch</text>')
    return lambda b: f"{fx * b + sx:.1f}", lambda v: f"{fy * min(max(v, low), high) + sy:.1f}", "".join(parts)


def _since(found: Findings, x: Any) -> str:
    """The stretch from the onset to the alarm."""
    if found.alarmed is None:
        return ""
    start, end = float(x(found.alarmed.onset - 0.5)), float(x(found.alarmed.batch))
    start = max(start, LEFT)
    return f'<rect class="since" x="{start:.1f}" y="10" width="{max(2.0, end - start):.1f}" height="{HEIGHT}"/>'


def _evidence(points: Sequence[Point], found: Findings) -> Markup:
    known = [point for point in points if point.log_e is not None]
    if not known:
        return Markup("")
    heights = [min(point.log_e / math.log(10), CAP) for point in known if point.log_e is not None]
    level = math.log10(1 / found.alpha)
    low, high = min(-1.0, *heights), max(level + 0.5, *heights)
    step = max(1, math.ceil((high - low) / 6))
    ticks = [
        (float(t), f"1e{t}" if abs(t) > 3 else f"{10.0**t:,g}") for t in range(math.ceil(low), int(high) + 1, step)
    ]
    x, y, frame = _frame(points, low, high, ticks)
    line = " ".join(f"{x(p.batch)},{y(h)}" for p, h in zip(known, heights, strict=True))
    parts = [frame, _since(found, x), f'<polyline class="line" points="{line}"/>']
    parts.append(f'<line class="level" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(level)}" y2="{y(level)}"/>')
    parts.append(
        f'<text class="alarm" x="{LEFT + 6}" y="{float(y(level)) - 5:.1f}">alarm at {1 / found.alpha:,.3g}</text>'
    )
    for point, height in zip(known, heights, strict=True):
        words = escape(f"{point.label}: log E {point.log_e:.2f}")
        parts.append(
            f'<circle class="dot" cx="{x(point.batch)}" cy="{y(height)}" r="2.5"><title>{words}</title></circle>'
        )
    return Markup("".join(parts))


def _gaps(points: Sequence[Point], found: Findings) -> Markup:
    if not points:
        return Markup("")
    reach = 1.1 * max(abs(p.gap) + 2 * p.error for p in points)
    size = 10.0 ** math.floor(math.log10(reach))
    unit = next(u * size for u in (1.0, 0.5, 0.2, 0.1) if reach / (u * size) >= 2)
    count = int(reach / unit)
    ticks = [(k * unit, f"{k * unit:+.3g}" if k else "0") for k in range(-count, count + 1)]
    x, y, frame = _frame(points, -reach, reach, ticks)
    upper = [f"{x(p.batch)},{y(p.high)}" for p in points]
    lower = [f"{x(p.batch)},{y(p.low)}" for p in reversed(points)]
    line = " ".join(f"{x(p.batch)},{y(p.mean)}" for p in points)
    parts = [frame, _since(found, x), f'<polygon class="band" points="{" ".join([*upper, *lower])}"/>']
    parts.append(f'<polyline class="line" points="{line}"/>')
    for p in points:
        words = escape(
            f"{p.label}: {p.gap:+.4f} in {p.rows:,} rows; all so far {p.mean:+.4f} [{p.low:+.4f}, {p.high:+.4f}]"
        )
        ends = y(p.gap - 2 * p.error), y(p.gap + 2 * p.error)
        parts.append(f'<g><line class="whisker" x1="{x(p.batch)}" x2="{x(p.batch)}" y1="{ends[0]}" y2="{ends[1]}"/>')
        parts.append(f'<circle class="own" cx="{x(p.batch)}" cy="{y(p.gap)}" r="2.5"/><title>{words}</title></g>')
    return Markup("".join(parts))


def _numbers(found: Findings, points: Sequence[Point]) -> Markup:
    told = {"calibrant": __version__, "findings": found.to_dict(), "history": [vars(point) for point in points]}
    return in_script(told)
