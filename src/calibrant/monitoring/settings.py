"""What a monitor is told once, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..parameters import Number, OneOf, check_value, is_one_of
from .alternatives import CENTRES, OFFSETS, SLOPES, Alternatives
from .process import FROM_THE_START, LIFETIME, RUN_LENGTH, Starts

FARTHEST = 1000  # log-odds that slopes may turn around: no probability but 0 is below e⁻⁷⁴⁵
MOST_CLASSES = 20  # up to here every class has a stream of its own unless the user says otherwise
CHOICES = {
    "question": ("calibrated", "changed"),
    "promise": ("lifetime", "run_length"),
    "method": ("grid", "closed"),
    "weights": ("importance", "counts"),
}


@dataclass(frozen=True)
class Settings:
    """The arguments of `Monitor`, which has their meaning."""

    alpha: float = 0.05
    question: str = "calibrated"
    promise: str = "lifetime"
    method: str = "grid"
    restarts: bool = True
    each_class: bool | None = None
    clip: float = 0.0
    weights: str = "importance"
    weight_unit: float = 1.0
    offsets: tuple[float, ...] = OFFSETS
    slopes: tuple[float, ...] = SLOPES
    centres: tuple[float, ...] = CENTRES
    random_state: int = 0

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if not is_one_of(getattr(self, name), allowed):
                words = " or ".join(f'"{word}"' for word in allowed)
                raise InvalidInput(f"{name} is not known", seen=repr(getattr(self, name)), allowed=words)
        check_value("restarts", self.restarts, OneOf(True, False))
        check_value("each_class", self.each_class, OneOf(None, True, False))
        _refuse_number("alpha", self.alpha, 1e-12 <= _real(self.alpha) < 1, "1e-12 to below 1, as 0.05")
        _refuse_number("clip", self.clip, 0 <= _real(self.clip) < 0.5, "a number from 0 to below 0.5, as 1e-6")
        _refuse_number("weight_unit", self.weight_unit, 0 < _real(self.weight_unit) < math.inf, "a positive number")
        for name in ("offsets", "slopes"):
            sizes = getattr(self, name)
            wrong = not all(math.isfinite(_real(size)) and 0 < abs(_real(size)) <= 10 for size in sizes)
            _refuse_number(name, sizes, not wrong and len(sizes) <= 100, "up to 100 numbers other than 0, to ±10")
        good = 0 < len(self.centres) <= 10 and all(abs(_real(c)) <= FARTHEST for c in self.centres)
        _refuse_number("centres", self.centres, good, f"1 to 10 log-odds, to ±{FARTHEST}")
        if not self.offsets and not self.slopes:
            raise InvalidInput("offsets and slopes are both empty", hint="leave one of them at its default")
        whole = isinstance(self.random_state, (int, np.integer)) and not isinstance(self.random_state, bool)
        _refuse_number("random_state", self.random_state, whole and 0 <= self.random_state < 2**63, "a whole number")
        self._refuse_contradictions()

    def _refuse_contradictions(self) -> None:
        if self.method == "closed" and (self.promise != "lifetime" or self.question != "calibrated"):
            raise InvalidInput(
                'method="closed" has no restarts, so it only serves question="calibrated" with promise="lifetime"',
                seen=f"question={self.question!r}, promise={self.promise!r}",
                hint='leave method at "grid"',
            )
        if self.promise == "run_length" and self.question != "calibrated":
            raise InvalidInput('promise="run_length" serves question="calibrated" only', seen=repr(self.question))

    @property
    def alternatives(self) -> Alternatives:
        """What is betted on."""
        return Alternatives(self.offsets, self.slopes, self.centres)

    @property
    def starts(self) -> Starts:
        """When bets begin."""
        if self.promise == "run_length":
            return RUN_LENGTH
        return LIFETIME if self.restarts else FROM_THE_START

    @property
    def threshold(self) -> float:
        """The log E at which the alarm is raised."""
        return math.log(1 / self.alpha)

    @property
    def level(self) -> float:
        """The α of confidence sequences: the monitor's own, or 5 % where that is about run lengths."""
        return self.alpha if self.promise == "lifetime" else 0.05

    def wants_classes(self, k: int) -> bool:
        """Tell whether every one of k classes is watched by itself."""
        return k > 2 and (k <= MOST_CLASSES if self.each_class is None else self.each_class)


def _real(value: Any) -> float:
    return float(value) if Number().accepts(value) else math.nan


def _refuse_number(name: str, value: Any, good: bool, allowed: str) -> None:
    if not good:
        raise InvalidInput(f"{name} cannot be used", seen=repr(value)[:80], allowed=allowed)
