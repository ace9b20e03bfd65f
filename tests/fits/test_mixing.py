"""The mixture as a problem: its derivatives, merging, and its optimum against a dense search."""

import pickle
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from calibrant.fits import mixture_search
from calibrant.fits.mixing import ENSEMBLE, Mixing, _log_sums, _square_sums
from calibrant.fits.mixture_search import best_mixture
from calibrant.passes import Block, in_memory, in_stream


class Soft:
    """A part that is answered: a softmax of half the logits."""

    def __init__(self, position):
        self.position = position

    def __call__(self, logits):
        yield self.position, softmax(logits / 2, axis=1)


MIXTURES = [
    (ENSEMBLE, None),
    ((None, "answered", None, 0.0), Soft(1)),
    ((1.0, "answered"), Soft(1)),
    ((None, 1.0, 0.0, "answered"), Soft(3)),
]


def rows(n=80, k=4, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    z = (rng.normal(size=(n, k)) * 3).astype(dtype)
    return Block(z, rng.integers(0, k, n), rng.random(n), k)


@pytest.mark.parametrize("loss", ["nll", "brier"])
@pytest.mark.parametrize(("parts", "answers"), MIXTURES)
def test_gradient_and_hessian_are_those_of_the_value(parts, answers, loss):
    mixing, data, rng = Mixing(parts, loss, answers), in_memory(rows()), np.random.default_rng(1)
    m, f, h = len(parts), len(mixing.free), 1e-5
    at = np.append(rng.dirichlet(np.ones(m)), rng.normal(size=f) * 0.5)
    sums = lambda t: mixing.sums(data, t[:m], t[m:])  # noqa: E731
    steps = np.eye(m + f) * h
    gradient = [(sums(at + s).value - sums(at - s).value) / (2 * h) for s in steps]
    hessian = [(sums(at + s).gradient - sums(at - s).gradient) / (2 * h) for s in steps]
    assert_allclose(sums(at).gradient, gradient, atol=1e-7)
    assert_allclose(sums(at).hessian, hessian, atol=1e-6)


@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_the_value_is_the_loss_of_the_mixture(loss):
    block = rows()
    w, beta = np.array([0.5, 0.2, 0.3]), 0.4
    p = w[0] * softmax(beta * block.logits, axis=1) + w[1] * softmax(block.logits, axis=1) + w[2] / 4
    chosen = p[np.arange(block.n), block.labels]
    losses = -np.log(chosen) if loss == "nll" else (p**2).sum(axis=1) - 2 * chosen + 1
    mixing, data = Mixing(ENSEMBLE, loss), in_memory(block)
    expected = np.average(losses, weights=block.weights)
    assert mixing.sums(data, w, np.log([beta])).value == pytest.approx(expected, rel=1e-12)
    assert mixing.at(np.log([beta])).mean_loss(data, w) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", ["nll", "brier"])
@pytest.mark.parametrize("parts", [ENSEMBLE, (None, 1.0, None)])
def test_blocks_merge_and_passes_hold_no_rows(parts, loss):
    block, mixing = rows(500), Mixing(parts, loss)
    cuts = [0, 1, 1, 40, 333, 500]
    pieces = [block.take(slice(a, b)) for a, b in pairwise(cuts)]
    w, x = np.full(3, 1 / 3), np.zeros(len(mixing.free))
    whole, parted = in_memory(block), in_stream(lambda: iter(pieces), 4, 4, np.float64)
    for a, b in zip(mixing.sums(whole, w, x), mixing.sums(parted, w, x), strict=True):
        assert_allclose(b, a, rtol=1e-10, atol=1e-12)
    for one_pass in (
        partial(_log_sums, mixing=mixing, weights=w, log_betas=x),
        partial(_square_sums, mixing=mixing, log_betas=x),
    ):
        assert len(pickle.dumps(one_pass)) < 4096


@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_rows_that_a_part_excludes_are_finite(loss):
    z = np.array([[0.0, -800.0], [3.0, 0.0], [0.0, -1e30], [1.0, 2.0]] * 30)
    block = Block(z, np.array([1, 0, 1, 1] * 30), None, 2)
    for parts in (ENSEMBLE, (None, 1.0)):
        found = best_mixture(in_memory(block), Mixing(parts, loss), 0.01, (1e-35, 1e5))
        assert np.isfinite(found.value)
        assert np.isfinite(found.weights).all()
        assert found.weights.sum() == pytest.approx(1)


def test_large_data_take_few_passes_after_a_pilot():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(20_000, 5)) * 8.0
    p = 0.7 * softmax(z / 4, axis=1) + 0.3 / 5
    y = (p.cumsum(1) > rng.random((len(z), 1))).argmax(1)
    found = best_mixture(in_memory(Block(z, y, None, 5)), Mixing(ENSEMBLE, "nll"), 0.2, (1e-5, 1e5))
    assert found.converged
    assert found.passes <= 6


def test_ladders_of_starts_begin_with_temperatures_that_are_one():
    assert mixture_search._LADDERS[0] == 0.0
    assert (np.diff(mixture_search._LADDERS) > 0).all()


@pytest.mark.parametrize("parts", [(None, 1.0, 0.0), (None, None)])
@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_what_all_scores_of_a_row_have_in_common_changes_nothing(loss, parts):
    """Five thousand more or less: a score is far from others, not from zero."""
    block, m = rows(), len(parts)
    free = sum(part is None for part in parts)
    shift = np.where(np.arange(block.n) % 2, 5000.0, -5000.0)[:, None]
    moved = Block(block.logits + shift, block.labels, block.weights, block.n_classes)
    mixing, at = Mixing(parts, loss), np.r_[np.full(m, 1 / m), np.linspace(-0.3, 0.4, free)]
    found, wanted = (mixing.sums(in_memory(some), at[:m], at[m:]) for some in (moved, block))
    assert found.value == pytest.approx(wanted.value, rel=1e-9)
    assert_allclose(found.gradient, wanted.gradient, atol=1e-9)
    assert_allclose(found.hessian, wanted.hessian, atol=1e-9)
