"""What chain and mixture share: a list of parts whose parameters are reachable by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..calibrator import Calibrator
from ..errors import InvalidInput


class Composition(Calibrator):
    """A calibrator made of ``parts``; ``parts__0__loss`` names a parameter of the first."""

    parts: Sequence[Calibrator]
    parts_: list[Calibrator]
    _learnt = ("parts_",)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with ``deep`` those of the parts too."""
        found = super().get_params(deep=False)
        if deep and isinstance(self.parts, (list, tuple)):  # what else it may be, fit refuses
            for i, part in enumerate(self.parts):
                if not isinstance(part, Calibrator):
                    continue
                found.update({f"parts__{i}__{key}": value for key, value in part.get_params(deep=True).items()})
        return found

    def set_params(self, **parameters: Any) -> Composition:
        """Set parameters; ``parts__i__name`` reaches into a part."""
        inside = {key: value for key, value in parameters.items() if key.startswith("parts__")}
        super().set_params(**{key: value for key, value in parameters.items() if key not in inside})
        known = self.get_params(deep=True) if inside else {}
        for key, value in inside.items():
            if key not in known:
                raise InvalidInput(f"{type(self).__name__} has no parameter {key}", allowed=", ".join(sorted(known)))
            _, position, inner = key.split("__", 2)
            self.parts[int(position)].set_params(**{inner: value})
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        name = type(self).__name__
        if not isinstance(self.parts, (list, tuple)) or not self.parts:
            raise InvalidInput(f"{name}: parts must be a list of at least one calibrator", seen=repr(self.parts))
        for i, part in enumerate(self.parts):
            if not isinstance(part, Calibrator):
                raise InvalidInput(
                    f"{name}: parts[{i}] is not a calibrator",
                    seen=repr(part),
                    hint='calibrant.make("ts") makes one',
                )
            part._check_parameters()
        self._check_parts()

    @property
    def _needs(self) -> str:
        return self.parts[0]._needs

    def _check_parts(self) -> None:
        """Raise where the shapes of the parts do not fit one another."""
