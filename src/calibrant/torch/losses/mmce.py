"""Maximum mean calibration error: a kernel measure of top-label calibration to train on (Kumar et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...parameters import Number
from .batch import as_batch, as_pairs, class_weights
from .rows import check, root, top_label

_STRENGTH, _WIDTH = Number(0.0), Number(0.0, open_low=True)


def mmce(
    logits: Tensor, targets: Tensor, width: float = 0.4, *, weighted: bool = False, ignore_index: int = -100
) -> Tensor:
    """``√(Σᵢⱼ wᵢ wⱼ (cᵢ - rᵢ)(cⱼ - rⱼ) exp(-|rᵢ - rⱼ| / width))`` over a batch.

    r is the top label's probability and c whether it is right. w is 1/n; ``weighted`` takes 1/(number right) and
    1/(number wrong) for rows that are right and wrong (the paper's Eq. 6), so that the few wrong rows of an accurate
    network count. That form is no estimate of the calibration error: it is not zero in expectation for a calibrated
    network. An empty batch has 0.

    Parameters
    ----------
    logits : Tensor of shape (n, K), (K,) or (n, K, d1, …)
    targets : Tensor
        Class indices, without the class dimension.
    width : float
        Of the Laplacian kernel; the paper's 0.4.
    ignore_index : int
        Class index that does not count.
    """
    check("mmce", width=(width, _WIDTH))
    r, c = top_label(logits, targets, ignore_index)
    if weighted:
        right = c.sum()
        share = torch.where(c > 0, 1 / right.clamp_min(1), 1 / (len(c) - right).clamp_min(1))
    else:
        share = torch.full_like(c, 1 / max(len(c), 1))
    gap = share * (c - r)
    kernel = torch.exp(-(r[:, None] - r[None, :]).abs() / width)
    return root(gap @ kernel @ gap)


class MMCELoss(nn.Module):
    """Cross-entropy plus λ times `mmce` of the batch; λ = 0 is cross-entropy.

    The penalty is of the batch as a whole, so there is no ``reduction``; batches of a hundred rows or more are
    advised, as below that the kernel sees its own diagonal most of all.
    """

    weight: Tensor | None

    def __init__(
        self,
        strength: float = 2.0,
        width: float = 0.4,
        weighted: bool = False,
        weight: Tensor | None = None,
        ignore_index: int = -100,
    ) -> None:
        super().__init__()
        check("MMCELoss", strength=(strength, _STRENGTH), width=(width, _WIDTH))
        self.strength, self.width, self.weighted, self.ignore_index = strength, width, weighted, ignore_index
        self.register_buffer("weight", class_weights(weight))

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the loss."""
        logits, targets = as_pairs(logits, targets)
        penalty = mmce(logits, targets, self.width, weighted=self.weighted, ignore_index=self.ignore_index)
        _, weight, _ = as_batch(logits, targets, self.weight, self.ignore_index)
        plain = nn.functional.cross_entropy(logits, targets, weight, ignore_index=self.ignore_index)
        return plain + self.strength * penalty
