"""What a batch must be: its types and shapes, and its values where looking at them waits for no device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...errors import InvalidInput

_EVENTS = "one logit a row, the log-odds of an event, is passed as (n, 1)"
_ROUNDED = 0.02  # bfloat16 probabilities of many classes sum to one within this


def as_pairs(logits: Any, targets: Any = None) -> tuple[Any, Any]:
    """Return a single logit z a row, the log-odds of an event, as two classes (0, z); other logits as they are.

    Targets may then have the shape of the logits or lack the class dimension: 0 and 1, or probabilities of the event
    as torch's ``BCEWithLogitsLoss`` takes them.
    """
    if not isinstance(logits, Tensor) or logits.dim() < 2 or logits.shape[1] != 1:
        return logits, targets
    if isinstance(targets, Tensor):
        if targets.shape == logits.shape:
            targets = targets[:, 0]
        if targets.is_floating_point() and targets.shape == logits.shape[:1] + logits.shape[2:]:
            targets = torch.stack([1 - targets, targets], dim=1)
    return torch.cat([torch.zeros_like(logits), logits], dim=1), targets


def as_batch(
    logits: Tensor, targets: Tensor, weight: Tensor | None = None, ignore_index: int = -100
) -> tuple[Tensor, Tensor | None, bool]:
    """Return targets and class weights as the logits need them, and whether targets are probabilities.

    What does not fit is refused with the argument's name.
    """
    classes = check_logits(logits)
    _check_tensor("targets", targets)
    if not isinstance(ignore_index, int) or isinstance(ignore_index, bool):
        raise InvalidInput("ignore_index must be a class index", seen=repr(ignore_index), allowed="an integer")
    soft = _is_soft(logits, targets)
    if soft:
        if ignore_index >= 0:  # as torch's own losses do; a negative one, as the default is, means nothing here
            raise InvalidInput("ignore_index is for class indices: targets are probabilities", seen=str(ignore_index))
        _check_probabilities(targets)
        targets = targets.to(logits.dtype)
    else:
        check_classes(targets, classes, ignore_index)
    if weight is None:
        return targets, None, soft
    if len(class_weights(weight)) != classes:
        raise InvalidInput("weight must have one number a class", seen=f"{len(weight)} of {classes} classes")
    return targets, weight.to(logits), soft


def check_logits(logits: Tensor) -> int:
    """Refuse what cannot be logits; return the number of classes."""
    _check_tensor("logits", logits)
    classes = 0 if logits.dim() == 0 else logits.shape[min(1, logits.dim() - 1)]
    if not logits.is_floating_point() or not classes:
        raise InvalidInput(
            "logits must be floating-point numbers of (n, K), (K,) or (n, K, d1, …)",
            seen=f"{tuple(logits.shape)} of {logits.dtype}",
        )
    if classes == 1:
        raise InvalidInput(
            "one logit alone says nothing of which class it belongs to",
            seen=f"shape {tuple(logits.shape)}",
            hint="pass the log-odds of an event as (n, 1)",
        )
    return classes


def check_classes(targets: Tensor, classes: int, ignore_index: int | None = None) -> None:
    """Refuse class indices that are no int64, or outside the classes.

    Their values are looked at on the CPU only: elsewhere that would wait for the device in every step, and torch's own
    assertion there stops the program.
    """
    if targets.dtype != torch.int64:
        raise InvalidInput(
            "targets must be class indices of int64", seen=f"{targets.dtype}", hint="pass targets.long()"
        )
    if not _is_at_hand(targets):
        return
    outside = (targets < 0) | (targets >= classes)
    if ignore_index is not None:
        outside &= targets != ignore_index
    if outside.any():
        seen = f"class {int(targets[outside][0])}"
        raise InvalidInput("targets are outside the classes", seen=seen, allowed=f"0 to {classes - 1}")


def class_weights(weight: Any) -> Any:
    """Return class weights, or None, as they are; refuse what no weights can be."""
    if weight is None:
        return None
    _check_tensor("weight", weight)
    if weight.dim() != 1 or weight.dtype == torch.bool or weight.is_complex():
        raise InvalidInput("weight must have one number a class", seen=f"{tuple(weight.shape)} of {weight.dtype}")
    if _is_at_hand(weight) and not ((weight >= 0) & (weight < torch.inf)).all():
        raise InvalidInput("weight must be finite and not negative", seen=f"{weight.tolist()[:8]}")
    return weight


def _is_soft(logits: Tensor, targets: Tensor) -> bool:
    """Tell targets that are probabilities, in the shape of the logits, from class indices; refuse what is neither."""
    if targets.is_floating_point():
        if targets.shape == logits.shape:
            return True
    elif logits.dim() == 1:
        if targets.dim() == 0:
            return False
    elif targets.shape == logits.shape[:1] + logits.shape[2:]:
        return False
    raise InvalidInput(
        "targets do not fit the logits",
        seen=f"targets {tuple(targets.shape)} of {targets.dtype}, logits {tuple(logits.shape)}",
        allowed="integer class indices without the class dimension, or probabilities in the shape of the logits",
        hint=_EVENTS if logits.dim() == 1 else "",
    )


def _check_probabilities(targets: Tensor) -> None:
    if _is_at_hand(targets) and not ((targets >= 0) & (targets <= 1 + 1e-5)).all():
        low, high = float(targets.min()), float(targets.max())
        raise InvalidInput("targets must be probabilities", seen=f"values from {low:g} to {high:g}", allowed="0 to 1")
    if not _is_at_hand(targets) or not targets.numel():
        return
    sums = targets.sum(dim=min(1, targets.dim() - 1), dtype=torch.float64)
    if (sums - 1).abs().max() > _ROUNDED:
        far = float(sums.flatten()[(sums - 1).abs().argmax()])
        raise InvalidInput(
            "targets must be probabilities of the classes, which sum to one",
            seen=f"a sum of {far:g}",
            hint=_EVENTS if targets.dim() == 1 else "",
        )


def _check_tensor(name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise InvalidInput(f"{name} must be a torch tensor", seen=type(value).__name__)


def _is_at_hand(values: Tensor) -> bool:
    """Tell whether values can be looked at without waiting for a device or breaking a compiled graph."""
    return values.device.type == "cpu" and not torch.compiler.is_compiling()
