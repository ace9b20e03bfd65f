"""How a false-alarm rate is shared among streams: Σ_s w_s E_s with Σ w_s ≤ 1 is an e-process like any single one."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["newcomer_share", "shares"]

RESERVED = 0.2  # of the groups' part, for groups that were not there in the first batch


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


def newcomer_share(has_classes: bool, place: int) -> float:
    """Return the weight of the first, second, … group that was not there in the first batch."""
    whole = 0.5 / (2 if has_classes else 1) * RESERVED
    return whole / (place * (place + 1))
