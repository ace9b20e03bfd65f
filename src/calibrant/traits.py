"""What a map promises and needs: declared once, read by the docs' table, the registry and the automatic choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Preserves = Literal["ranking", "top label", "nothing"]
Target = Literal["top label", "each class", "full"]
Sees = Literal["sums", "cells", "sample"]
_STRENGTH: tuple[Preserves, ...] = ("nothing", "top label", "ranking")


@dataclass(frozen=True)
class Traits:
    """Declared properties of a map; each is tested, not only declared.

    Attributes
    ----------
    shape : str
        What it acts on: "scaling" (the whole logit vector), "binary" (one score), "kernel", "perturbation".
    preserves : {"ranking", "top label", "nothing"}
        "ranking": the order of every row's classes is kept (ties may appear); "top label": the predicted class,
        hence the accuracy; "nothing": classes may overtake one another.
    calibrates : {"top label", "each class", "full"}
        What it can make true.
    parameters : str
        How the number of parameters grows: "1", "2K", "K²", "bins", "n".
    needs : str
        "scores" or "embeddings".
    sees : {"sums", "cells", "sample"}
        How a fit sees data: by sums of a size that does not grow with the rows; by fine cells of the scores, likewise;
        or by rows in memory, which are a sample where all of them are not.
    """

    shape: str
    preserves: Preserves
    calibrates: Target
    parameters: str
    needs: str = "scores"
    sees: Sees = "sums"

    @property
    def preserves_accuracy(self) -> bool:
        """Whether the predicted class never changes."""
        return self.preserves != "nothing"


_SEES: tuple[Sees, ...] = ("sums", "cells", "sample")


def most_of(ways: list[Sees]) -> Sees:
    """Return how maps that are fitted together see data: as the most demanding of them."""
    return max(ways, key=_SEES.index)


def weakest(promises: list[Preserves]) -> Preserves:
    """Return what maps applied one after the other preserve together."""
    return min(promises, key=_STRENGTH.index)
