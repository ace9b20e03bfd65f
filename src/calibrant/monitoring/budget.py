"""How a false-alarm rate is shared among streams: Σ_s w_s E_s with Σ w_s ≤ 1 is an e-process like any single one."""

from __future__ import annotations

from collections.abc import Sequence

RESERVED = 0.4  # of the groups' part, for groups that were not there in the first batch


def shares(main: str, classes: Sequence[str], groups: Sequence[str]) -> dict[str, float]:
    """Return the weight of each stream of the first batch.

    Half for all rows together, half for the others; the classes and the groups have equal parts of that.
    """
    families = [family for family in (classes, groups) if family]
    found = {main: 1.0 if not families else 0.5}
    for family in families:
        whole = 0.5 / len(families)
        if family is groups:
            whole *= 1 - RESERVED
        found |= {name: whole / len(family) for name in family}
    return found


def newcomer_share(has_classes: bool, turn: int, many: int) -> float:
    """Return the weight of each of ``many`` groups that come at once, the first, second, … time that new ones come."""
    whole = 0.5 / (2 if has_classes else 1) * RESERVED
    return whole / (turn * (turn + 1) * many)
