"""Errors and warnings: what was wrong, what was seen, what is allowed, and a hint."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


class CalibrantError(ValueError):
    """Base of every error calibrant raises on purpose.

    Parameters
    ----------
    what : str
        What is wrong, naming the argument.
    seen : str, optional
        The value or property that was found.
    allowed : str, optional
        What would have been accepted.
    hint : str, optional
        What to do about it.
    """

    def __init__(self, what: str, *, seen: str = "", allowed: str = "", hint: str = "") -> None:
        what, seen, allowed, hint = (_plain(text) for text in (what, seen, allowed, hint))
        self.what, self.seen, self.allowed, self.hint = what, seen, allowed, hint
        parts = [what]
        parts += [f"seen: {seen}"] if seen else []
        parts += [f"allowed: {allowed}"] if allowed else []
        parts += [f"hint: {hint}"] if hint else []
        super().__init__("; ".join(parts))


_WRAPPED = re.compile(r"\bnp\.(?:(?:str_|u?int\d+|float\d+)\(([^()]*)\)|(True|False)_)")


def _plain(text: str) -> str:
    """Return the text with NumPy's scalars as Python writes them: 'ant' for np.str_('ant')."""
    return _WRAPPED.sub(r"\1\2", text)


class InvalidInput(CalibrantError):
    """An argument that cannot be used as it is."""


class InvalidType(InvalidInput, TypeError):
    """An argument of a type that no conversion can help."""


class FileProblem(CalibrantError):
    """A file that cannot be read, written or understood."""


class MissingExtra(CalibrantError, ImportError):
    """An optional dependency that is not installed; the message names the extra."""


@contextmanager
def blamed(
    what: str,
    *kinds: type[Exception],
    problem: type[CalibrantError] = FileProblem,
    most: int = 200,
    allowed: str = "",
    hint: str = "",
) -> Iterator[None]:
    """Let exceptions of these kinds become a problem of ours, with at most so many letters of what they say as seen."""
    try:
        yield
    except CalibrantError:
        raise
    except kinds as error:
        seen = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise problem(what, seen=seen[:most], allowed=allowed, hint=hint) from error


@contextmanager
def reading_state(what: str) -> Iterator[None]:
    """Refuse plain values that nothing of ours has written: whatever goes wrong while they are read means them."""
    try:
        yield
    except CalibrantError:
        raise
    except (ArithmeticError, AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise FileProblem(f"this is no {what}", seen=f"{type(error).__name__}: {error}"[:120]) from error


def import_extra(module: str, extra: str, what: str) -> Any:
    """Import a module of an optional dependency, or say which extra brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"{what} needs {module.partition('.')[0]}, which is not installed", hint=f'pip install "calibrant[{extra}]"'
        ) from error


def count_of(number: float, noun: str) -> str:
    """Return "1 row", "2 rows", "3 batches"."""
    return f"{number:,.0f} {noun}" + ("" if number == 1 else "es" if noun.endswith("ch") else "s")


class CalibrationWarning(UserWarning):
    """A fit that ended, but whose result deserves a look before it is used."""


# Whose code calls calibrant for the user: a warning points at none of their lines.
_NOT_THE_USERS = {"calibrant", "sklearn", "joblib", "concurrent", "threading", "contextlib"}


def caution(message: str, category: type[Warning] = CalibrationWarning) -> None:
    """Warn, and point at the line of the user's own code that led here."""
    level, frame = 2, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_USERS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
