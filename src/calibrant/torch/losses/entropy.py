"""Entropy regularisation: cross-entropy that pays for being sure (Pereyra et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...parameters import Number
from .batch import as_batch, as_pairs, check_logits
from .rows import RowLoss, as_rows, check, reduced

_STRENGTH = Number(0.0)


def entropy(logits: Tensor) -> Tensor:
    """H(p) = -Σ p log p of each row's softmax, in nats; a class at -inf adds nothing."""
    logits, _ = as_pairs(logits)
    check_logits(logits)
    log_p = torch.log_softmax(as_rows(logits), dim=1)
    values = -(log_p.exp() * log_p.clamp_min(torch.finfo(log_p.dtype).min)).sum(dim=1)
    shape = logits.shape[:1] + logits.shape[2:] if logits.dim() > 1 else torch.Size()
    return values.reshape(shape)


def entropy_regularized_loss(
    logits: Tensor,
    targets: Tensor,
    strength: float = 0.1,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """-log p_y - β H(p), the confidence penalty; β = 0 is cross-entropy.

    Parameters
    ----------
    logits, targets, weight, ignore_index, reduction
        See `focal_loss`. The entropy is not weighted by class; its mean is over the rows that count.
    strength : float
        β, in nats against nats.
    """
    check("entropy_regularized_loss", reduction, strength=(strength, _STRENGTH))
    logits, targets = as_pairs(logits, targets)
    targets, weight, soft = as_batch(logits, targets, weight, ignore_index)
    loss = nn.functional.cross_entropy(logits, targets, weight, ignore_index=ignore_index, reduction=reduction)
    spread = entropy(logits)
    if soft:
        return loss - strength * reduced(spread, reduction)
    counted = targets != ignore_index
    return loss - strength * reduced(torch.where(counted, spread, torch.zeros_like(spread)), reduction, counted.sum())


class EntropyRegularizedLoss(RowLoss):
    """`entropy_regularized_loss` as a module."""

    def __init__(
        self, strength: float = 0.1, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, ignore_index, reduction)
        check("EntropyRegularizedLoss", reduction, strength=(strength, _STRENGTH))
        self.strength = strength

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the loss."""
        return entropy_regularized_loss(logits, targets, self.strength, **self.shared())
