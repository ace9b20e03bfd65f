"""Adam written out beside torch's own."""

import subprocess
import sys

import pytest

from calibrant.torch.adam import Adam

torch = pytest.importorskip("torch")

TRAINING = """
import sys
import numpy as np
from calibrant import KCal
rng = np.random.default_rng(0)
KCal().fit_projection(rng.normal(size=(400, 4)), np.arange(400) % 2)
assert "torch" in sys.modules
assert "torch._dynamo" not in sys.modules
"""


def test_steps_are_those_of_torch():
    source = torch.Generator().manual_seed(0)
    start = [torch.randn(5, 3, generator=source), torch.zeros(5), torch.randn(5, 5, generator=source)]
    ours, theirs = ([p.clone().requires_grad_() for p in start] for _ in range(2))
    adam, reference = Adam(ours, 0.01), torch.optim.Adam(theirs, lr=0.01)
    for step in range(200):
        if step == 120:
            adam.rate, reference.param_groups[0]["lr"] = 0.005, 0.005
        x, y = torch.randn(16, 3, generator=source), torch.randn(16, 5, generator=source)
        for parameters in (ours, theirs):
            u = x @ parameters[0].T + parameters[1]
            ((torch.tanh(u) @ parameters[2] - y) ** 2).mean().backward()
        adam.step()
        reference.step()
        reference.zero_grad()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-7)
    assert all(p.grad is None for p in ours)


def test_training_a_projection_does_not_import_the_compiler():
    subprocess.run([sys.executable, "-c", TRAINING], check=True)
