"""The page of a monitor: verdict, evidence, gaps and streams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from .. import __version__
from ..monitoring import Findings, Monitor, Point
from .marks import in_script
from .svg import across, along, band, box, circle, polyline, text, titled, upright

LEFT, WIDTH, HEIGHT = 64, 560, 190  # of the inside of a chart
SIZE = f"0 0 {LEFT + WIDTH + 30} {HEIGHT + 52}"
CAP = 12.0  # decades of evidence that are drawn
_NAMED = 4  # batches, and the last: names of 14 letters stand side by side, also where the last one ends at the edge
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


def _frame(
    points: Sequence[Point], low: float, high: float, ticks: Sequence[tuple[float, str]]
) -> tuple[Any, Any, str]:
    """Return the places of batches and values, and the marks of the axes."""
    x = along(points[0].batch - points[0].batches, points[-1].batch + 1, LEFT, LEFT + WIDTH)
    y = along(low, high, HEIGHT + 10, 10)
    parts = []
    for value, words in ticks:
        parts.append(across("grid", y(value), LEFT, LEFT + WIDTH))
        parts.append(text(words, LEFT - 6, y(value) + 4, "end"))
    step = max(1, -(-len(points) // _NAMED))
    for point in points[::-step][::-1]:
        words = point.label if len(point.label) < 14 else point.label[:12] + "…"
        anchor = "middle" if x(point.batch) < LEFT + WIDTH - 30 else "end"  # so that the last is not cut
        parts.append(text(words, x(point.batch), HEIGHT + 28, anchor))
    parts.append(text("batch", LEFT + WIDTH / 2, HEIGHT + 46))
    return x, lambda value: y(min(max(value, low), high)), "".join(parts)


def _since(found: Findings, x: Any) -> str:
    """The stretch from the onset to the alarm."""
    if found.alarmed is None:
        return ""
    start, end = max(x(found.alarmed.onset - 0.5), LEFT), x(found.alarmed.batch)
    return box(start, 10, max(2.0, end - start), HEIGHT, "since")


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
    if high == CAP:  # what is above is drawn here
        ticks = [(t, words) for t, words in ticks if t <= CAP - step] + [(CAP, f"≥ 1e{CAP:g}")]
    x, y, frame = _frame(points, low, high, ticks)
    parts = [frame, _since(found, x), polyline("line", [x(p.batch) for p in known], [y(h) for h in heights])]
    parts.append(across("level", y(level), LEFT, LEFT + WIDTH))
    parts.append(text(f"alarm at {1 / found.alpha:,.3g}", LEFT + 6, y(level) - 5, "start", "alarm"))
    for point, height in zip(known, heights, strict=True):
        told = f"{point.label}: log E {point.log_e:.2f}"
        parts.append(circle(x(point.batch), y(height), 2.5, "dot", told))
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
    batches = [x(p.batch) for p in points]
    parts = [frame, _since(found, x), band(batches, [y(p.low) for p in points], [y(p.high) for p in points])]
    parts.append(polyline("line", batches, [y(p.mean) for p in points]))
    for p in points:
        told = f"{p.label}: {p.gap:+.4f} in {p.rows:,} rows; all so far {p.mean:+.4f} [{p.low:+.4f}, {p.high:+.4f}]"
        whisker = upright("whisker", x(p.batch), y(p.gap - 2 * p.error), y(p.gap + 2 * p.error))
        parts.append(f"<g>{whisker}{circle(x(p.batch), y(p.gap), 2.5, 'own')}{titled(told)}</g>")
    return Markup("".join(parts))


def _numbers(found: Findings, points: Sequence[Point]) -> Markup:
    told = {"calibrant": __version__, "findings": found.to_dict(), "history": [vars(point) for point in points]}
    return in_script(told)
