"""What all plots share: an Axes to draw on, and colours that the colour-blind and a grey printer tell apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidInput, import_extra
from ..plain import visible
from ..types import Array
from ..validation.arrays import as_array, as_float

BEFORE, AFTER = "#d55e00", "#0072b2"  # Okabe and Ito; apart in grey too, and every mark has a shape of its own
LINES = (
    ("#0072b2", "-", "o"),
    ("#d55e00", "--", "s"),
    ("#009e73", ":", "^"),
    ("#cc79a7", "-.", "D"),
    ("#e69f00", "-", "v"),
    ("#56b4e9", "--", "P"),
)


def refuse_other(found: Any, part: str, allowed: str) -> None:
    """Raise where what is to be drawn lacks a part that the picture shows."""
    if isinstance(found, type) or not hasattr(found, part):
        raise InvalidInput("this picture cannot be drawn of it", seen=type(found).__name__, allowed=allowed)


def numbers(name: str, values: Any, shape: tuple[int, ...], most: float) -> Array:
    """Return numbers of a shape (-1: any) and up to a size, or raise: what is no number has no place in a picture."""
    found = as_float(as_array(values, name)[0], name).astype(np.float64)
    fits = found.ndim == len(shape) and all(want in (-1, seen) for want, seen in zip(shape, found.shape, strict=True))
    if not fits or not found.size or not (np.abs(found) <= most).all():
        size = str(shape).replace("-1", "n")
        seen = f"shape {found.shape}" if not fits or not found.size else f"up to {np.abs(found).max():g}"
        raise InvalidInput(
            f"{name} cannot be drawn", seen=seen, allowed=f"{size} numbers between {-most:g} and {most:g}"
        )
    return found


def axes(ax: Any = None, *, figsize: tuple[float, float] = (4.2, 4.2)) -> Any:
    """Return the Axes given, or those of a new figure of pyplot, which windows and notebooks show."""
    return ax if ax is not None else new_figure(figsize).add_subplot()


def new_figure(figsize: tuple[float, float]) -> Any:
    """Return a new figure that ``plt.show()`` knows of; no setting is changed."""
    plt = import_extra("matplotlib.pyplot", "plots", "a picture")

    return plt.figure(figsize=figsize, layout="constrained")


def dress(ax: Any) -> Any:
    """Give the words and lines around the Axes a colour that the figure's ground lets them be read in."""
    figure = ax.get_figure()
    if figure is not None:
        colour = ink(figure)
        ax.tick_params(colors=colour, which="both")
        for part in (ax.xaxis.label, ax.yaxis.label, ax.title):
            part.set_color(colour)
        for spine in ax.spines.values():
            spine.set_edgecolor(colour)
    return ax


def legend(ax: Any, **places: Any) -> None:
    """Name the lines, on the Axes' own ground so that marks behind do not disturb."""
    ax.legend(fontsize="small", labelcolor=ink(ax), facecolor=ax.get_facecolor(), edgecolor="none", **places)


def named(name: str, most: int = 30) -> str:
    """Return a name of the user's as text of a picture: short, no formula, what is no character written out."""
    return visible(name[:most], kept="").replace("$", r"\$") + ("…" if len(name) > most else "")


def ink(place: Any) -> str:
    """Return the colour for neutral marks: dark on light Axes or figures, light on dark ones."""
    from matplotlib.colors import to_rgba

    red, green, blue, opacity = to_rgba(place.get_facecolor())
    if opacity == 0:  # the page behind is not known; most are light
        return "#222222"
    return "#222222" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "#dddddd"
