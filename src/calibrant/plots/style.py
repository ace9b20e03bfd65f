"""What all plots share: an Axes to draw on, and colours that the colour-blind and a grey printer tell apart."""

from __future__ import annotations

from typing import Any

__all__ = ["AFTER", "BEFORE", "LINES", "axes", "ink"]

BEFORE, AFTER = "#d55e00", "#0072b2"  # Okabe and Ito; apart in grey too, and every mark has a shape of its own
LINES = (
    ("#0072b2", "-", "o"),
    ("#d55e00", "--", "s"),
    ("#009e73", ":", "^"),
    ("#cc79a7", "-.", "D"),
    ("#e69f00", "-", "v"),
    ("#56b4e9", "--", "P"),
)


def axes(ax: Any = None, *, figsize: tuple[float, float] = (4.2, 4.2)) -> Any:
    """Return the Axes given, or those of a new figure that no global state knows of."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=figsize, layout="constrained").add_subplot()


def ink(ax: Any) -> str:
    """Return the colour for neutral marks: dark on light Axes, light on dark ones."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(ax.get_facecolor())
    return "#222222" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "#dddddd"
