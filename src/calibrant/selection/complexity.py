"""How many parameters a map has: its trait, worked out for a problem."""

from __future__ import annotations

import re

__all__ = ["parameter_count"]

_BINS = 15
_FACTOR = re.compile(r"(\d+|K|[a-z]+)(²?)")


def parameter_count(growth: str, k: int, n: int) -> float:
    """Return the number that a trait such as "1", "K·2", "K² + K" or "bins" stands for; other words count as the rows.

    Examples
    --------
    >>> parameter_count("1 + K·2", 10, 500), parameter_count("K²", 10, 500), parameter_count("n", 10, 500)
    (21.0, 100.0, 500.0)
    """
    sizes = {"K": k, "n": n, "d": k, "bins": _BINS, "points": _BINS}
    total = 0.0
    for term in growth.split("+"):
        product = 1.0
        for word, square in _FACTOR.findall(term):
            value = float(word) if word.isdigit() else float(sizes.get(word, n))
            product *= value**2 if square else value
        total += product
    return total
