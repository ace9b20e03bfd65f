"""Declared constraints on constructor parameters: one table makes the check, the message and the tests' bad values."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import InvalidInput, blamed

MOST = 1e30  # of a strength, a scale or a number that was learnt: products with scores stay finite in either precision
_ROWS = 10**9  # of random numbers that can be asked for at once
_PIECES = 10**6  # bins, knots or folds that can be asked for: each costs memory, and has no row of its own beyond


def is_one_of(value: Any, allowed: Iterable[Any]) -> bool:
    """Tell whether a value of any type is one of a few words, numbers or None; an array is none of them."""
    return (value is None or isinstance(value, (str, numbers.Number))) and value in tuple(allowed)


@dataclass(frozen=True)
class OneOf:
    """One of a few constants; None counts like any other."""

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)

    def accepts(self, value: Any) -> bool:
        """Tell whether the value is one of the constants."""
        return any(value is v or (type(value) is type(v) and value == v) for v in self.values)

    @property
    def allowed(self) -> str:
        """What is accepted, in words."""
        return " or ".join(repr(v) for v in self.values)

    @property
    def bad(self) -> list[Any]:
        """Values that must be refused."""
        return ["no-such-choice", 3.25]


@dataclass(frozen=True)
class Number:
    """A finite real number in an interval."""

    low: float = -np.inf
    high: float = np.inf
    open_low: bool = False

    def accepts(self, value: Any) -> bool:
        """Tell whether the value is a number inside."""
        if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
            return False  # also of fractions, which kernels cannot read
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond all floats
            return False
        above = self.low < number if self.open_low else self.low <= number
        return bool(np.isfinite(number)) and above and number <= self.high

    @property
    def allowed(self) -> str:
        """What is accepted, in words."""
        return f"a number in {'(' if self.open_low else '['}{self.low:g}, {self.high:g}]"

    @property
    def bad(self) -> list[Any]:
        """Values that must be refused."""
        below, above = (end + side * (1 + abs(end)) for end, side in ((self.low, -1), (self.high, 1)))
        ends = [below, above, *([self.low] if self.open_low else [])]
        return [*(end for end in ends if np.isfinite(end)), np.nan, "many", True]


@dataclass(frozen=True)
class Integer:
    """A whole number of at least ``low``, and of at most ``high`` where there is a limit."""

    low: int = 0
    high: int | None = None

    def accepts(self, value: Any) -> bool:
        """Tell whether the value is an integer that is large enough."""
        if not isinstance(value, numbers.Integral) or isinstance(value, (bool, np.bool_)):
            return False
        return self.low <= int(value) and (self.high is None or int(value) <= self.high)

    @property
    def allowed(self) -> str:
        """What is accepted, in words."""
        most = "" if self.high is None else f", and at most {self.high:,}"
        return f"an integer of at least {self.low}{most}"

    @property
    def bad(self) -> list[Any]:
        """Values that must be refused."""
        return [self.low - 1, self.low + 0.5, "many", True, *([] if self.high is None else [self.high + 1])]


AMOUNT = Number(0, MOST)
SCALE = Number(1 / MOST, MOST)  # one over it is finite as well


def count_from(low: int) -> Integer:
    """Return the constraint of a number of pieces: bins, knots, folds."""
    return Integer(low, _PIECES)


def generator(random_state: Any, *more: int) -> np.random.Generator:
    """Return the random numbers of a seed that a user gave, and of numbers of ours beside it."""
    if not Integer(0).accepts(random_state):
        raise InvalidInput("random_state is not valid", seen=repr(random_state)[:80], allowed=Integer(0).allowed)
    return np.random.default_rng([int(random_state), *more] if more else int(random_state))


def any_generator(random_state: Any) -> np.random.Generator:
    """Return the random numbers of whatever NumPy makes some of: a seed, a generator, or None for fresh ones."""
    with blamed(
        "random_state is not valid", TypeError, ValueError, problem=InvalidInput, allowed="a seed or generator"
    ):
        return np.random.default_rng(random_state)


def check_drawing(shape: Any, rng: Any) -> None:
    """Raise where so many numbers cannot be drawn, or where what they are drawn from is no generator."""
    check_value("rng", rng, Instance((np.random.Generator,), "a numpy.random.Generator"))
    lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
    length = Integer(0, _ROWS)
    if not all(length.accepts(n) for n in lengths) or len(lengths) > 32 or math.prod(map(int, lengths)) > _ROWS:
        raise InvalidInput(
            "so many samples cannot be drawn", seen=repr(shape)[:80], allowed=f"integers of product 0 to {_ROWS:,}"
        )


@dataclass(frozen=True)
class Instance:
    """An object of a type, or with the methods of one."""

    types: tuple[Any, ...]  # a type, or an abstract one such as Callable
    words: str

    def accepts(self, value: Any) -> bool:
        """Tell whether the value has one of the types."""
        return isinstance(value, self.types)

    @property
    def allowed(self) -> str:
        """What is accepted, in words."""
        return self.words

    @property
    def bad(self) -> list[Any]:
        """Values that must be refused."""
        return [object()]


@dataclass(frozen=True)
class AnyOf:
    """Any of several constraints."""

    options: tuple[Any, ...]

    def __init__(self, *options: Any) -> None:
        object.__setattr__(self, "options", options)

    def accepts(self, value: Any) -> bool:
        """Tell whether one of the constraints accepts the value."""
        return any(option.accepts(value) for option in self.options)

    @property
    def allowed(self) -> str:
        """What is accepted, in words."""
        return ", or ".join(option.allowed for option in self.options)

    @property
    def bad(self) -> list[Any]:
        """Values that every one of the constraints refuses."""
        return [v for option in self.options for v in option.bad if not self.accepts(v)]


def check_parameters(owner: Any, table: Mapping[str, Any]) -> None:
    """Raise on the first parameter of ``owner`` that its constraint in ``table`` refuses."""
    for name, constraint in table.items():
        value = getattr(owner, name)
        if not constraint.accepts(value):
            raise InvalidInput(
                f"{type(owner).__name__}: {name} is not valid", seen=repr(value), allowed=constraint.allowed
            )


def check_value(name: str, value: Any, constraint: Any) -> None:
    """Raise where the constraint refuses an argument of a method."""
    if not constraint.accepts(value):
        raise InvalidInput(f"{name} is not valid", seen=repr(value), allowed=constraint.allowed)
