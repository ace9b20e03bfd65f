"""Losses that make a network calibrated while it trains (extra ``torch``).

Each loss is a module, called with logits and targets as torch's own are, and a plain function: `FocalLoss`, `MMCELoss`,
`EntropyRegularizedLoss`, `LabelSmoothingLoss` with `mixup`, and `SoftBinnedECELoss`.
"""

from ...errors import MissingExtra

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise MissingExtra("calibrant.torch.losses needs torch", hint='pip install "calibrant[torch]"') from error

from .entropy import EntropyRegularizedLoss, entropy, entropy_regularized_loss
from .focal import FocalLoss, flsd53, focal_loss
from .mmce import MMCELoss, mmce
from .smoothing import LabelSmoothingLoss, label_smoothing_loss, mixup
from .soft_binned import SoftBinnedECELoss, soft_binned_ece

__all__ = [
    "EntropyRegularizedLoss",
    "FocalLoss",
    "LabelSmoothingLoss",
    "MMCELoss",
    "SoftBinnedECELoss",
    "entropy",
    "entropy_regularized_loss",
    "flsd53",
    "focal_loss",
    "label_smoothing_loss",
    "mixup",
    "mmce",
    "soft_binned_ece",
]
