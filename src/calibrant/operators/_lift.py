"""What the maps share that act through a map on one score."""

from __future__ import annotations

from typing import Any

from ..calibrator import Calibrator
from ..errors import InvalidInput
from ..maps.binary.base import BinaryMap
from ..maps.binary.two_class import TwoClassMap


class Lift(Calibrator):
    """Base of maps that are given a ``binary_map``: a `BinaryMap`, or a chain or mixture of them."""

    binary_map: Calibrator

    @property
    def _lifted(self) -> BinaryMap:
        return self.binary_map if isinstance(self.binary_map, BinaryMap) else TwoClassMap(self.binary_map)

    @property
    def _needs(self) -> str:
        return "scores"

    @property
    def _zeros_in_order(self) -> bool:
        return self.binary_map._zeros_in_order

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _require_one_score(self.binary_map, "binary_map", type(self))


def _require_one_score(piece: Any, name: str, owner: type) -> None:
    """Refuse to lift what does not act on one score, and say which piece of a chain or mixture that is."""
    parts = getattr(piece, "parts", None)
    if isinstance(piece, Calibrator) and isinstance(parts, (list, tuple)) and parts:
        for i, part in enumerate(parts):
            _require_one_score(part, f"{name}.parts[{i}]", owner)
    elif not isinstance(piece, BinaryMap):
        why = ""
        if isinstance(piece, Lift):
            why = ", which is lifted to K classes already"
        elif isinstance(piece, Calibrator):
            why = f", a {piece.traits.shape} map"
        raise InvalidInput(
            f"{owner.__name__}: {name} must act on one score of one class",
            seen=f"{type(piece).__name__}{why}",
            allowed="a BinaryMap, such as Isotonic() or PlattScaling(), or a chain or mixture of them",
        )
