"""The loss of KCal's training beside plain NumPy and finite differences."""

import importlib

import numpy as np
import pytest

torch = pytest.importorskip("torch")
kernel_log_loss = importlib.import_module("calibrant.torch.kernel_loss").kernel_log_loss


def problem(dtype=torch.float64, spread=1.0, seed=0):
    """Seven points of four classes against eleven background rows, sorted by class; the last class has none."""
    rng = np.random.default_rng(seed)
    labels, classes = rng.integers(3, size=7), np.repeat([0, 1, 2], [2, 5, 4])
    labels[2] = 3
    a, b = (torch.tensor(spread * rng.normal(size=(n, 3)), dtype=dtype) for n in (7, 11))
    log_counts, weights = rng.normal(size=11), rng.random(7)
    log_counts[4] = -1e4
    own = [torch.as_tensor(np.searchsorted(classes, labels, side)) for side in ("left", "right")]
    return a, b, torch.as_tensor(log_counts, dtype=dtype), own, torch.as_tensor(weights, dtype=dtype), labels, classes


def by_hand(a, b, log_counts, weights, labels, classes):
    kernel = np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(2) + log_counts)
    share = (kernel * (labels[:, None] == classes)).sum(1) / kernel.sum(1)
    return -(weights * np.log(np.maximum(share, 1e-10))).sum()


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_that_of_the_formula(seed):
    a, b, log_counts, own, weights, labels, classes = problem(seed=seed)
    wanted = by_hand(*(t.numpy() for t in (a, b, log_counts, weights)), labels, classes)
    assert float(kernel_log_loss(a, b, log_counts, own, weights)) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_its_gradient_is_that_of_finite_differences(seed):
    a, b, log_counts, own, weights, *_ = problem(seed=seed)
    sides = a.requires_grad_(), b.requires_grad_()
    torch.autograd.gradcheck(lambda a, b: kernel_log_loss(a, b, log_counts, own, weights), sides)


def test_points_far_apart_have_a_finite_loss_and_gradient():
    a, b, log_counts, own, weights, *_ = problem(torch.float32, spread=1e3)
    a.requires_grad_()
    value = kernel_log_loss(a, b, log_counts, own, weights)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(a.grad).all()
    assert (a.grad[2] == 0).all()  # no background row of its class: clipped, so nothing moves it
