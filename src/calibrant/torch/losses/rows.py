"""What the losses share: rows out of any shape torch allows, the top label, reduction, and checks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ...errors import InvalidInput
from .batch import as_batch, as_pairs, class_weights

_REDUCTIONS = ("mean", "sum", "none")


def check(owner: str, reduction: str = "mean", **numbers: tuple[Any, Any]) -> None:
    """Raise on a parameter that its constraint refuses: ``name=(value, constraint)``; not while torch compiles."""
    if torch.compiler.is_compiling():
        return
    if reduction not in _REDUCTIONS:
        raise InvalidInput(f"{owner}: reduction is not valid", seen=repr(reduction), allowed=" or ".join(_REDUCTIONS))
    for name, (value, constraint) in numbers.items():
        if not constraint.accepts(value):
            raise InvalidInput(f"{owner}: {name} is not valid", seen=repr(value), allowed=constraint.allowed)


class RowLoss(nn.Module):
    """What losses of rows share as modules: class weights that move with it, an index to ignore, a reduction."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None, ignore_index: int, reduction: str) -> None:
        super().__init__()
        self.ignore_index, self.reduction = ignore_index, reduction
        self.register_buffer("weight", class_weights(weight))

    def shared(self) -> dict[str, Any]:
        """Return these as arguments of the function that the module stands for."""
        return {"weight": self.weight, "ignore_index": self.ignore_index, "reduction": self.reduction}


def as_rows(logits: Tensor) -> Tensor:
    """Flatten (K,), (n, K) or (n, K, d1, …) to (rows, K)."""
    if logits.dim() <= 2:
        return logits.reshape(-1, logits.shape[-1])
    return logits.movedim(1, -1).reshape(-1, logits.shape[1])


def top_label(logits: Tensor, targets: Tensor, ignore_index: int = -100) -> tuple[Tensor, Tensor]:
    """Return the top label's probability and whether it is right (a constant to the gradient), for rows that count."""
    logits, targets = as_pairs(logits, targets)
    targets, _, soft = as_batch(logits, targets, ignore_index=ignore_index)
    if soft:
        raise InvalidInput(
            "targets must be class indices: a mixed target is neither right nor wrong",
            seen=f"targets of {targets.dtype}",
            hint="pass targets.long() where they are 0 and 1",
        )
    rows, labels = as_rows(logits), targets.reshape(-1)
    rows, labels = rows[labels != ignore_index], labels[labels != ignore_index]
    confidence, top = torch.softmax(rows, dim=1).max(dim=1)
    return confidence, (top == labels).to(confidence.dtype)


def reduced(values: Tensor, reduction: str, weight: Tensor | float | None = None) -> Tensor:
    """Take the mean (over ``weight``, where given), the sum, or nothing."""
    if reduction == "none":
        return values
    if reduction == "sum":
        return values.sum()
    return values.mean() if weight is None else values.sum() / weight


def root(square: Tensor) -> Tensor:
    """√ with a finite gradient at zero (of zero, where a penalty has reached it)."""
    least = torch.finfo(square.dtype).eps ** 2
    return torch.where(square > least, square.clamp_min(least).sqrt(), torch.zeros_like(square))
