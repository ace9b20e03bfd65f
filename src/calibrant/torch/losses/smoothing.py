"""Label smoothing and mixup: targets that are never quite sure (Szegedy et al. 2016; Zhang et al. 2018)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import InvalidInput
from ...parameters import Integer, Number
from .batch import as_batch, as_pairs, check_classes
from .rows import RowLoss, check

_SMOOTHING, _ALPHA, _CLASSES = Number(0.0, 1.0), Number(0.0, open_low=True), Integer(2)


def label_smoothing_loss(
    logits: Tensor,
    targets: Tensor,
    smoothing: float = 0.05,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy against (1 - s) target + s / K, as torch computes it; targets may be `mixup`'s.

    Parameters
    ----------
    logits, targets, weight, ignore_index, reduction
        See `focal_loss`.
    smoothing : float
        s, in [0, 1].
    """
    check("label_smoothing_loss", reduction, smoothing=(smoothing, _SMOOTHING))
    logits, targets = as_pairs(logits, targets)
    targets, weight, _ = as_batch(logits, targets, weight, ignore_index)
    return nn.functional.cross_entropy(
        logits, targets, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=smoothing
    )


class LabelSmoothingLoss(RowLoss):
    """`label_smoothing_loss` as a module."""

    def __init__(
        self, smoothing: float = 0.05, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, ignore_index, reduction)
        check("LabelSmoothingLoss", reduction, smoothing=(smoothing, _SMOOTHING))
        self.smoothing = smoothing

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the loss."""
        return label_smoothing_loss(logits, targets, self.smoothing, **self.shared())


def mixup(
    inputs: Tensor, targets: Tensor, n_classes: int, alpha: float = 0.2, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Mix a batch with a shuffle of itself: λ a + (1 - λ) b, inputs and one-hot targets alike, one λ ~ Beta(α, α).

    Parameters
    ----------
    inputs : Tensor of shape (n, …)
    targets : Tensor of shape (n,)
        Class indices.
    n_classes : int
    alpha : float
        The larger, the nearer λ is to one half.
    generator : torch.Generator, optional
        Source of λ and the shuffle; torch's own by default.

    Returns
    -------
    (Tensor, Tensor)
        Mixed inputs, and targets as probabilities of shape (n, n_classes), for any loss here that takes them.
    """
    check("mixup", alpha=(alpha, _ALPHA), n_classes=(n_classes, _CLASSES))
    _check_mixable(inputs, targets, n_classes, generator)
    source = torch.device("cpu") if generator is None else generator.device
    seed = int(torch.randint(2**62, (1,), generator=generator, device=source))
    share = float(np.random.default_rng(seed).beta(alpha, alpha))
    order = torch.randperm(len(inputs), generator=generator, device=source).to(targets.device)
    kind = inputs.dtype if inputs.is_floating_point() else torch.get_default_dtype()
    one_hot = nn.functional.one_hot(targets, n_classes).to(kind)
    mixed = share * inputs + (1 - share) * inputs[order.to(inputs.device)]
    return mixed, share * one_hot + (1 - share) * one_hot[order]


def _check_mixable(inputs: Tensor, targets: Tensor, n_classes: int, generator: torch.Generator | None) -> None:
    if not isinstance(inputs, Tensor) or not isinstance(targets, Tensor):
        raise InvalidInput(
            "inputs and targets must be torch tensors", seen=f"{type(inputs).__name__}, {type(targets).__name__}"
        )
    if inputs.dim() == 0 or targets.shape != inputs.shape[:1] or targets.is_floating_point():
        seen = f"targets {tuple(targets.shape)} of {targets.dtype}, inputs {tuple(inputs.shape)}"
        raise InvalidInput("targets must be one class index a row of inputs", seen=seen)
    check_classes(targets, n_classes)
    if generator is not None and not isinstance(generator, torch.Generator):
        raise InvalidInput("generator must be a torch.Generator", seen=type(generator).__name__, allowed="or None")
