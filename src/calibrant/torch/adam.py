"""Adam in a dozen lines: `torch.optim` would import torch's compiler first, which takes seconds."""

from __future__ import annotations

from typing import Any

_FIRST, _SECOND, _LEAST = 0.9, 0.999, 1e-8


class Adam:
    """Kingma and Ba (2015), Algorithm 1, with the settings advised there; the same numbers as `torch.optim.Adam`."""

    def __init__(self, parameters: list[Any], rate: float) -> None:
        self.parameters, self.rate, self.steps = parameters, rate, 0
        self.moments = [(p.detach().clone().zero_(), p.detach().clone().zero_()) for p in parameters]

    def step(self) -> None:
        """Move each parameter along its gradient, and forget that."""
        self.steps += 1
        rate, root = self.rate / (1 - _FIRST**self.steps), (1 - _SECOND**self.steps) ** 0.5
        for parameter, (mean, square) in zip(self.parameters, self.moments, strict=True):
            gradient, parameter.grad = parameter.grad, None
            mean.lerp_(gradient, 1 - _FIRST)
            square.mul_(_SECOND).addcmul_(gradient, gradient, value=1 - _SECOND)
            parameter.data.addcdiv_(mean, (square.sqrt() / root).add_(_LEAST), value=-rate)
