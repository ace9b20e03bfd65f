"""Values as JSON has them, and text that a terminal shows."""

from __future__ import annotations

import math
from typing import Any


def plain(value: Any, digits: int | None = None, nan: str | None = None) -> Any:
    """Return NumPy's types as Python's; NaN is ``nan`` and what is infinite "inf", as JSON has no numbers for them.

    ``digits`` are the significant ones that numbers keep.
    """
    if isinstance(value, dict):
        return {str(key): plain(item, digits, nan) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, digits, nan) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist(), digits, nan)
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return nan if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value if digits is None else float(f"{value:.{digits}g}")


def short(value: float, digits: int) -> float:
    """Return a number of so many digits; a whole one without a point, in full where floats hold it."""
    whole = math.isfinite(value) and float(value).is_integer() and abs(value) < 2**53
    return int(value) if whole else float(f"{value:.{digits}g}")


def visible(text: str, kept: str = "\n") -> str:
    """Return text with control characters and marks of direction written out: shown, and not obeyed by a terminal.

    Names of classes and files come from users, and may hold any of them.

    Examples
    --------
    >>> visible("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(c if c in kept or c.isprintable() else c.encode("unicode_escape").decode() for c in text)
