"""Which map to take, and why, in words (Mix-n-Match, App. G)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..registry import STEPS
from .result import Curve, Estimate, Row

# Some sixty rules were tried on 176 draws of real scores, and this one was taken after looking at all of them, so that
# what it cost there flatters it; docs/evidence/choice.md shows it on other draws, most of other sets. Taking any
# simpler map within one standard error cost up to a third of the loss at 200 rows.
_CLEAR = 2.0  # standard errors beyond which a gain is clear; unless one is, a mixture of maps rests less on luck
_SIMPLER = 0.25  # standard errors within which a simpler map is as good
_IMMATERIAL = 0.005  # of the loss: so little, within one standard error, is not worth a parameter


def choose(rows: Sequence[Row], metric: str, n: int) -> tuple[Row, Row]:
    """Return (the map to take, the one with the lowest loss), among eligible maps, judged on n rows.

    The map to take is the first of these that comes near the lowest loss: the identity (within one standard error and
    0.5 % of the loss), the blend (within two standard errors, and where the lowest is a step function some nats), the
    simplest map (within a quarter, or within one and 0.5 % of the loss). Where the blend loses more than the identity,
    this takes its place. The error is that of the paired difference to the lowest, so maps that err on the same rows
    are told apart.
    """
    candidates = [row for row in rows if row.metrics and row.eligible]
    lowest = min(candidates, key=lambda row: (row.metrics[metric].value, row.size))
    losing = any(row.name == "blend" and row.against_identity[metric].value > 0 for row in candidates)
    safe = "identity" if losing else "blend"
    for name, errors, ahead in (("identity", 0.0, 0.0), (safe, _CLEAR, _ahead(lowest, metric) / n)):
        for row in candidates:
            if row.name == name and _near(row, lowest, metric, errors, ahead):
                return row, lowest
    good = [row for row in candidates if _near(row, lowest, metric, _SIMPLER)]
    return min(good, key=lambda row: (row.size, row.metrics[metric].value)), lowest


def _ahead(lowest: Row, metric: str) -> float:
    """Return the nats that the lead of the lowest may be worth nothing."""
    return STEPS.get(lowest.name, 0.0) if metric == "nll" else 0.0


def _near(row: Row, lowest: Row, metric: str, errors: float, ahead: float = 0.0) -> bool:
    gap = row.against_best[metric]
    if row is lowest or not math.isfinite(gap.value):
        return row is lowest
    immaterial = gap.value <= min(gap.error, _IMMATERIAL * lowest.metrics[metric].value)
    return immaterial or gap.value <= errors * gap.error + ahead


def explain(rows: Sequence[Row], chosen: Row, lowest: Row, metric: str, n: int, k: int, curves: Sequence[Curve]) -> str:
    """Say why this map, and what more data would change."""
    if not math.isfinite(lowest.metrics[metric].value):
        return (
            f"Every map compared gives some labels that occur a probability of zero, so every {metric} is infinite and "
            "decides nothing; compare by Brier score, or with maps such as ets and irova that lift zeros."
        )
    words = [_why(chosen, lowest, metric)]
    if chosen.name != "identity":
        words.append(_gain(rows, chosen, metric))
    if "accuracy" in chosen.metrics:  # one event has no predicted label
        words.append("It keeps every predicted label." if chosen.keeps != "nothing" else _accuracy(chosen))
    words.append(_more_data(rows, chosen, metric, n, k, curves))
    return " ".join(words)


def _why(chosen: Row, lowest: Row, metric: str) -> str:
    gap = chosen.against_best[metric]
    behind = f"({lowest.name}: {-gap.value:+.4f} ± {1.96 * gap.error:.4f})"
    if chosen is lowest and chosen.name == "identity":
        return f"No map has a lower held-out {metric} than the scores as they are: leave them alone."
    if chosen.name == "identity":
        little = "little and within" if _near(chosen, lowest, metric, 0.0) else "not clear of"
        return (
            f"What maps gain in held-out {metric} over the scores as they are is {little} the noise {behind}: "
            "leave them alone."
        )
    if chosen is lowest:
        simpler = "" if chosen.name == "blend" else ", and no simpler map comes near it"
        return f"{chosen.name} has the lowest held-out {metric}{simpler}."
    if chosen.name == "blend" and gap.value > _CLEAR * gap.error and _ahead(lowest, metric):
        return (
            f"The lead of {lowest.name} over blend {behind} is less than the {_ahead(lowest, metric):.0f} nats over "
            "all rows that a step function owes to folds with few errors, so blend is the safer choice."
        )
    if chosen.name == "blend":
        return (
            f"No map has a clearly lower held-out {metric} than blend {behind}, and a mixture rests less on luck than "
            "the lowest of many maps."
        )
    return f"{chosen.name} is the simplest map {_distance(gap, lowest, metric)} the lowest held-out {metric} {behind}."


def _distance(gap: Estimate, lowest: Row, metric: str) -> str:
    if gap.value <= _SIMPLER * gap.error:
        return "within a quarter of a standard error of"
    return f"within one standard error and {_IMMATERIAL:.1%} of"


def _gain(rows: Sequence[Row], chosen: Row, metric: str) -> str:
    before = next(row for row in rows if row.name == "identity").metrics[metric].value
    after, gain = chosen.metrics[metric].value, chosen.against_identity[metric]
    if not math.isfinite(before):
        return (
            f"The scores as they came give some labels that occur a probability of zero, so their {metric} is "
            f"infinite; with {chosen.name} it is {after:.4f}."
        )
    sure = "clear" if -gain.value > _CLEAR * gain.error else "not clear"
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
