"""Soft-binned calibration error: ECE with bins that a gradient passes (Karandikar et al. 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...parameters import Integer, Number, OneOf
from .batch import as_batch, as_pairs, class_weights
from .rows import check, root, top_label

_STRENGTH, _TEMPERATURE, _NORM, _BINS = Number(0.0), Number(0.0, open_low=True), OneOf(1, 2), Integer(1)


def soft_binned_ece(
    logits: Tensor,
    targets: Tensor,
    bins: int = 15,
    temperature: float = 0.01,
    norm: int = 2,
    *,
    ignore_index: int = -100,
) -> Tensor:
    """``(Σⱼ Sⱼ/n |Aⱼ - Cⱼ|ᵖ)^(1/p)``: Sⱼ, Aⱼ, Cⱼ are mass, accuracy and confidence of bins that share each row.

    A row of confidence c belongs to the bin with centre ξⱼ in proportion to exp(-(c - ξⱼ)² / temperature). As the
    temperature falls this becomes the ECE on bins of equal width. An empty batch has 0.

    Parameters
    ----------
    logits : Tensor of shape (n, K), (K,) or (n, K, d1, …)
    targets : Tensor
        Class indices, without the class dimension.
    bins : int
    temperature : float
        The paper's 0.01.
    norm : {1, 2}
        p; the paper trains with 2, ECE has 1.
    ignore_index : int
        Class index that does not count.
    """
    check("soft_binned_ece", bins=(bins, _BINS), temperature=(temperature, _TEMPERATURE), norm=(norm, _NORM))
    confidence, right = top_label(logits, targets, ignore_index)
    centres = (torch.arange(bins, dtype=confidence.dtype, device=confidence.device) + 0.5) / bins
    share = torch.softmax(-((confidence[:, None] - centres) ** 2) / temperature, dim=1)
    mass = share.sum(dim=0)
    gap = (share * (right - confidence)[:, None]).sum(dim=0)
    held = mass > torch.finfo(mass.dtype).tiny ** 0.5
    safe = torch.where(held, mass, torch.ones_like(mass))
    size = torch.where(held, gap.abs() / safe, torch.zeros_like(gap))
    total = (mass * size**norm).sum() / max(len(confidence), 1)
    return total if norm == 1 else root(total)


class SoftBinnedECELoss(nn.Module):
    """Cross-entropy plus λ times `soft_binned_ece` of the batch; λ = 0 is cross-entropy.

    The penalty is of the batch as a whole, so there is no ``reduction``.
    """

    weight: Tensor | None

    def __init__(
        self,
        strength: float = 1.0,
        bins: int = 15,
        temperature: float = 0.01,
        norm: int = 2,
        weight: Tensor | None = None,
        ignore_index: int = -100,
    ) -> None:
        super().__init__()
        checked = {"strength": (strength, _STRENGTH), "bins": (bins, _BINS), "norm": (norm, _NORM)}
        check("SoftBinnedECELoss", temperature=(temperature, _TEMPERATURE), **checked)
        self.strength, self.bins, self.temperature, self.norm = strength, bins, temperature, norm
        self.ignore_index = ignore_index
        self.register_buffer("weight", class_weights(weight))

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the loss."""
        logits, targets = as_pairs(logits, targets)
        penalty = soft_binned_ece(
            logits, targets, self.bins, self.temperature, self.norm, ignore_index=self.ignore_index
        )
        _, weight, _ = as_batch(logits, targets, self.weight, self.ignore_index)
        plain = nn.functional.cross_entropy(logits, targets, weight, ignore_index=self.ignore_index)
        return plain + self.strength * penalty
