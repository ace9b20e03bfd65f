"""The elements of inline SVG as text: places to a tenth of a unit, words escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from markupsafe import escape


def at(value: Any) -> str:
    """Return a place or a length as SVG has it."""
    return f"{round(float(value), 1):g}"


def along(low: float, high: float, start: float, end: float) -> Callable[[Any], Any]:
    """Return the line that takes low to start and high to end; where these are one, a width of one."""
    factor = (end - start) / ((high - low) or 1.0)
    return lambda value: start + factor * (value - low)


def line(kind: str, x: tuple[Any, Any], y: tuple[Any, Any]) -> str:
    """Return a straight line from the first ends to the second."""
    return f'<line class="{kind}" x1="{at(x[0])}" x2="{at(x[1])}" y1="{at(y[0])}" y2="{at(y[1])}"/>'


def across(kind: str, y: Any, left: float, right: float) -> str:
    """Return a horizontal line."""
    return line(kind, (left, right), (y, y))


def upright(kind: str, x: Any, top: float, bottom: float) -> str:
    """Return a vertical line."""
    return line(kind, (x, x), (top, bottom))


def places(x: Iterable[Any], y: Iterable[Any]) -> str:
    """Return points as a polygon or a broken line lists them; one that repeats the last is left out."""
    found = [f"{at(a)},{at(b)}" for a, b in zip(x, y, strict=True)]
    return " ".join(point for i, point in enumerate(found) if i == 0 or point != found[i - 1])


def polyline(kind: str, x: Iterable[Any], y: Iterable[Any], title: str = "") -> str:
    """Return a broken line through points."""
    return f'<polyline class="{kind}" points="{places(x, y)}">{titled(title)}</polyline>'


def band(x: Any, low: Iterable[Any], high: Iterable[Any]) -> str:
    """Return the ground between two curves."""
    return f'<polygon class="band" points="{places(x, low)} {places(reversed(x), reversed([*high]))}"/>'


def circle(x: Any, y: Any, radius: float, kind: str = "", title: str = "") -> str:
    """Return a dot."""
    return f'<circle{_named(kind)} cx="{at(x)}" cy="{at(y)}" r="{radius}">{titled(title)}</circle>'


def box(x: Any, y: Any, width: float, height: float, kind: str = "", title: str = "") -> str:
    """Return a rectangle by its upper left corner."""
    place = f'x="{at(x)}" y="{at(y)}" width="{at(width)}" height="{at(height)}"'
    return f"<rect{_named(kind)} {place}>{titled(title)}</rect>"


def text(words: Any, x: Any, y: Any, anchor: str = "middle", kind: str = "") -> str:
    """Return words at a place: the anchor says which part of them stands there."""
    return f'<text{_named(kind)} x="{at(x)}" y="{at(y)}" text-anchor="{anchor}">{escape(words)}</text>'


def turned(words: str, x: float, y: float) -> str:
    """Return words that are read from below."""
    return f'<text transform="translate({at(x)} {at(y)}) rotate(-90)" text-anchor="middle">{escape(words)}</text>'


def _named(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def titled(words: str) -> str:
    """Return what a pointer that rests on the element around it is shown."""
    return f"<title>{escape(words)}</title>" if words else ""
