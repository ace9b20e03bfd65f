"""Focal loss: cross-entropy that leaves alone what is already sure (Lin et al. 2017; Mukhoti et al. 2020)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ...errors import InvalidInput
from ...parameters import Number
from .batch import as_batch, as_pairs
from .rows import RowLoss, as_rows, check, reduced

Gamma = float | Callable[[Tensor], Tensor]
_GAMMA = Number(0.0)


def flsd53(p: Tensor) -> Tensor:
    """γ by row as in Mukhoti et al. (2020), §5 (FLSD-53): 5 where the target has a probability below 0.2, 3 elsewhere.

    0.2 and 0.25 are where the gradients of focal loss with these γ meet that of cross-entropy.
    """
    return torch.where(p < 0.2, 5.0, 3.0).to(p.dtype)


def focal_loss(
    logits: Tensor,
    targets: Tensor,
    gamma: Gamma = 3.0,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """-(1 - p)^γ log p, p the target's probability; γ = 0 is cross-entropy.

    It is at least the cross-entropy less γ times the entropy of the answer, so training on it makes flatter answers. It
    is not a proper score: on enough clean data the answers that minimise it are less sure than the truth.

    Parameters
    ----------
    logits : Tensor of shape (n, K), (K,) or (n, K, d1, …)
        With K = 1 the log-odds of an event: two classes, whose weights are those of the event's absence and presence.
    targets : Tensor
        Class indices without the class dimension, or probabilities in the shape of ``logits`` (as `mixup` makes them).
    gamma : float or callable
        A function gets the target's probability by row, without gradient, and returns γ by row: `flsd53`.
    weight : Tensor of shape (K,), optional
        By class. As in torch, the mean is over the weights of the targets.
    ignore_index : int
        Class index that does not count.
    reduction : {"mean", "sum", "none"}
    """
    check("focal_loss", reduction, gamma=(0.0 if callable(gamma) else gamma, _GAMMA))
    logits, targets = as_pairs(logits, targets)
    targets, weight, soft = as_batch(logits, targets, weight, ignore_index)
    log_p = torch.log_softmax(as_rows(logits), dim=1)
    weights = log_p.new_ones(log_p.shape[1]) if weight is None else weight
    if soft:
        q = as_rows(targets)
        finite = log_p.clamp_min(torch.finfo(log_p.dtype).min)  # a class at -inf that no target asks for adds nothing
        terms = torch.where(q > 0, q * weights * _focal(finite, gamma), torch.zeros_like(q))
        return reduced(terms.sum(dim=1).reshape(_shape(logits)), reduction)
    labels = targets.reshape(-1)
    counted = labels != ignore_index
    place = torch.where(counted, labels, torch.zeros_like(labels))
    share = torch.where(counted, weights[place], torch.zeros_like(weights[place]))
    picked = torch.where(counted, log_p.gather(1, place[:, None])[:, 0], torch.zeros_like(share))
    return reduced((share * _focal(picked, gamma)).reshape(targets.shape), reduction, share.sum())


def _focal(log_p: Tensor, gamma: Gamma) -> Tensor:
    """-(1 - p)^γ log p; 1 - p stays off zero, where a power below one has no gradient."""
    rest = (-torch.expm1(log_p)).clamp_min(torch.finfo(log_p.dtype).eps)
    return -(rest ** (_by_row(gamma, log_p) if callable(gamma) else gamma)) * log_p


def _by_row(gamma: Callable[[Tensor], Tensor], log_p: Tensor) -> Tensor:
    power = gamma(log_p.detach().exp())
    if not isinstance(power, Tensor) or power.shape != log_p.shape:
        seen = f"shape {tuple(power.shape)}" if isinstance(power, Tensor) else type(power).__name__
        raise InvalidInput("gamma must give a tensor in the shape of the probabilities", seen=seen)
    return power


def _shape(logits: Tensor) -> torch.Size:
    """The logits' shape without the class dimension."""
    return logits.shape[:1] + logits.shape[2:] if logits.dim() > 1 else torch.Size()


class FocalLoss(RowLoss):
    """`focal_loss` as a module; ``FocalLoss(flsd53)`` has the sample-dependent γ of Mukhoti et al. (2020)."""

    def __init__(
        self, gamma: Gamma = 3.0, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, ignore_index, reduction)
        check("FocalLoss", reduction, gamma=(0.0 if callable(gamma) else gamma, _GAMMA))
        self.gamma = gamma

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the loss."""
        return focal_loss(logits, targets, self.gamma, **self.shared())
