"""The log-loss of points under class-wise kernel sums, with its gradient written out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_LEAST = 1e-10  # probabilities are clipped here in the loss, as in the paper's code


def kernel_log_loss(
    points: Tensor, background: Tensor, log_counts: Tensor, own: tuple[Tensor, Tensor], weights: Tensor
):
    """-Σᵢ wᵢ log(Σ_{j in own} cⱼ k(aᵢ, bⱼ) / Σⱼ cⱼ k(aᵢ, bⱼ)), k(a, b) = exp(-|a - b|² / 2) (KCal, Eq. 3 and 12).

    ``own`` has for each point the first background row of its class and the one after its last: background rows are
    sorted by class. Kernel sums are taken relative to their largest term.
    """
    return _KernelLogLoss.apply(points, background, log_counts, *own, weights)


class _KernelLogLoss(torch.autograd.Function):
    """Left to torch, the steps between kernels and loss would each keep an array of all pairs: half as fast again.

    With q the share of a pair in its row's sum and s the share of the own class, the gradient by the exponents is
    w (q - q·[own] / s): two products with it are the gradients by the points.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, log_counts: Tensor, first: Tensor, end: Tensor, weights: Tensor):
        kernels = torch.addmm(log_counts - 0.5 * (b * b).sum(1), a, b.T)
        kernels.sub_(kernels.amax(1, keepdim=True)).exp_()
        widest = int((end - first).max())
        places = first[:, None] + torch.arange(widest, device=a.device)
        inside = places < end[:, None]
        places.clamp_(max=len(b) - 1)
        mine, sums = kernels.gather(1, places) * inside, kernels.sum(1)
        share = mine.sum(1) / sums
        clipped = share.clamp(min=_LEAST)
        kernels.scatter_add_(1, places, -mine / clipped[:, None])
        ctx.save_for_backward(kernels, a, b, weights / sums * (share >= _LEAST))
        return -(weights * torch.log(clipped)).sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor):
        kernels, a, b, scale = ctx.saved_tensors
        scale = (scale * gradients[0])[:, None]
        by_a = (kernels @ b).mul_(scale)
        by_b = (kernels.T @ (a * scale)).addcmul_(kernels.T @ scale, b, value=-1.0)
        return by_a, by_b, None, None, None, None
