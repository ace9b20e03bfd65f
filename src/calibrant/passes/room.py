"""How much memory a fit may take, as its user said, and what it takes already."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import InvalidInput, caution

_LITTLE = 64_000_000  # bytes that nobody is told of: as much as imports vary by
_MUCH = 256_000_000  # bytes beyond which too little room is refused, not only told:
_OFF = 1.25  # where they are so many times what is allowed, as they are known to so much only


@dataclass(frozen=True)
class Room:
    """Bytes that may be taken beyond the interpreter, and those that are."""

    allowed: int
    taken: int = 0

    def taking(self, need: float, what: str) -> Room:
        """Return what is left beside something that needs so many bytes; too little is told, or refused."""
        total = self.taken + int(need)
        if total > max(self.allowed, _LITTLE):
            self._refuse(total, what)
        return replace(self, taken=total)

    def left_by(self, need: float) -> Room:
        """Return what is left beside so many bytes that nobody need be told of."""
        return replace(self, taken=int(need))

    def refuse_much(self, need: float, what: str) -> None:
        """Refuse what needs far more than there is, before it has taken it."""
        if self._is_much(self.taken + need):
            self._refuse(self.taken + int(need), what)

    def _is_much(self, total: float) -> bool:
        return total > max(_OFF * self.allowed, _MUCH)

    def _refuse(self, total: int, what: str) -> None:
        said = f"with {what} this takes about {_megabytes(total)} beyond the interpreter"
        if self._is_much(total):
            raise InvalidInput(
                said,
                seen=f"memory={_megabytes(self.allowed)}",
                allowed=f"memory={_megabytes(total)} or more",
                hint="allow more by memory= (--memory), or fit fewer rows or classes: sample=",
            )
        caution(f"{said}, and memory= allows {_megabytes(self.allowed)}; the fit goes on")


def _megabytes(size: int) -> str:
    return f"{-(-size // 1_000_000)}MB"
