"""Errors and warnings: what was wrong, what was seen, what is allowed, and a hint."""

from __future__ import annotations

__all__ = ["CalibrantError", "CalibrationWarning", "FileProblem", "InvalidInput", "InvalidType", "MissingExtra"]


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
        self.what, self.seen, self.allowed, self.hint = what, seen, allowed, hint
        parts = [what]
        parts += [f"seen: {seen}"] if seen else []
        parts += [f"allowed: {allowed}"] if allowed else []
        parts += [f"hint: {hint}"] if hint else []
        super().__init__("; ".join(parts))


class InvalidInput(CalibrantError):
    """An argument that cannot be used as it is."""


class InvalidType(InvalidInput, TypeError):
    """An argument of a type that no conversion can help."""


class FileProblem(CalibrantError):
    """A file that cannot be read, written or understood."""


class MissingExtra(CalibrantError, ImportError):
    """An optional dependency that is not installed; the message names the extra."""


class CalibrationWarning(UserWarning):
    """A fit that ended, but whose result deserves a look before it is used."""
