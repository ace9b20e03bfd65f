"""Which map to take, and why, in words (Mix-n-Match, App. G)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .result import Curve, Row

__all__ = ["choose", "explain"]

_CLEAR = 2.0  # standard errors


def choose(rows: Sequence[Row], metric: str) -> tuple[Row, Row]:
    """Return (simplest good map, lowest loss): among eligible maps within one standard error of the lowest.

    The error is that of the paired difference to the lowest, so maps that err on the same rows are told apart.
    """
    candidates = [row for row in rows if row.metrics and row.eligible]
    lowest = min(candidates, key=lambda row: (row.metrics[metric].value, row.size))
    good = [row for row in candidates if row is lowest or _near(row, metric)]
    return min(good, key=lambda row: (row.size, row.metrics[metric].value)), lowest


def _near(row: Row, metric: str) -> bool:
    gap = row.against_best[metric]
    return math.isfinite(gap.value) and gap.value <= gap.error


def explain(rows: Sequence[Row], chosen: Row, lowest: Row, metric: str, n: int, k: int, curves: Sequence[Curve]) -> str:
    """Say why this map, and what more data would change."""
    if not math.isfinite(lowest.metrics[metric].value):
        return (
            f"Every map compared gives some labels that occur a probability of zero, so every {metric} is infinite and "
            "decides nothing; compare by Brier score, or with maps such as ets and irova that lift zeros."
        )
    words = [_why(chosen, lowest, metric), _gain(rows, chosen, metric)]
    if "accuracy" in chosen.metrics:  # one event has no predicted label
        words.append("It keeps every predicted label." if chosen.keeps != "nothing" else _accuracy(chosen))
    words.append(_more_data(rows, chosen, metric, n, k, curves))
    return " ".join(words)


def _why(chosen: Row, lowest: Row, metric: str) -> str:
    if chosen is lowest:
        return f"{chosen.name} has the lowest held-out {metric}, and no simpler map comes within one standard error."
    gap = chosen.against_best[metric]
    return (
        f"{chosen.name} is the simplest map within one standard error of the lowest held-out {metric} "
        f"({lowest.name}: {-gap.value:+.4f} ± {1.96 * gap.error:.4f})."
    )


def _gain(rows: Sequence[Row], chosen: Row, metric: str) -> str:
    if chosen.name == "identity":
        return "No map improves on the scores as they are by more than the noise: leave them alone."
    before = next(row for row in rows if row.name == "identity").metrics[metric].value
    after, gain = chosen.metrics[metric].value, chosen.against_identity[metric]
    if not math.isfinite(before):
        return (
            f"The scores as they came give some labels that occur a probability of zero, so their {metric} is "
            f"infinite; with {chosen.name} it is {after:.4f}."
        )
    sure = "clear" if -gain.value > _CLEAR * gain.error else "within the noise"
    return (
        f"Held-out {metric} goes from {before:.4f} to {after:.4f} "
        f"({gain.value:+.4f} ± {1.96 * gain.error:.4f}, {sure})."
    )


def _accuracy(chosen: Row) -> str:
    change = chosen.against_identity["accuracy"]
    return f"It may change labels: accuracy {change.value:+.4f} ± {1.96 * change.error:.4f}."


def _more_data(rows: Sequence[Row], chosen: Row, metric: str, n: int, k: int, curves: Sequence[Curve]) -> str:
    falling = [c for c in curves if len(c.estimates) > 1 and _still_falls(c)]
    if falling:
        return f"With more rows {', '.join(c.name for c in falling)} would still improve: their learning curves fall."
    flexible = [row for row in rows if row.metrics and row.size > chosen.size and row.name != chosen.name]
    per_class = n / k
    such_as = " (such as irova-ts, if accuracy need not be kept)" if "accuracy" in chosen.metrics else ""
    if flexible and per_class < 200:
        return (
            f"There are about {per_class:.0f} rows a class; maps with more parameters{such_as} gain most from more "
            "rows, so compare again when there are several times as many."
        )
    return "More rows would hardly change this choice; they would narrow the intervals."


def _still_falls(curve: Curve) -> bool:
    last, before = curve.estimates[-1], curve.estimates[-2]
    return before.value - last.value > last.error
