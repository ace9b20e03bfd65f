"""The fused passes of the linear maps against plain NumPy."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax

from calibrant import get_threads, set_threads
from calibrant.maps.scaling._frame import Frame
from calibrant.maps.scaling._problem import LinearProblem
from calibrant.passes import Block, in_memory, in_stream


def twin(problem, theta):
    """Loss, gradient and probabilities of softmax(u + D x + b), as NumPy says it."""
    s, f = problem.data.rows(), problem.frame
    z = s.logits.astype(np.float64) * f.beta
    u = log_softmax(z, axis=1)
    x = np.maximum(u, f.floor)
    mean = x.mean(axis=1, keepdims=True)
    x = x - mean if f.centred else x
    if f.confidence is not None:
        x = np.hstack([x, (mean - f.confidence[0]) / f.confidence[1]])
    d, b = problem.plain(theta)
    a = u + (x @ d.T if problem.full else x * d) + b
    y, w = np.eye(s.n_classes)[s.labels], s.weight_array[:, None]
    p = softmax(a, axis=1)
    r = w * (p - y)
    loss = float((w[:, 0] * (logsumexp(a, axis=1) - a[np.arange(s.n), s.labels])).sum())

    average = np.average(x, axis=0, weights=s.weight_array)
    average[s.n_classes :] = 0.0  # of the confidence, which is standardised
    x = x - average if problem.full else x
    slopes = r.T @ x if problem.full else (r * x).sum(axis=0)[:, None]
    return loss, np.column_stack([slopes, r.sum(axis=0)]).ravel(), p


def random_problem(rng, k, full, dtype, centred, weighted, n=150, confidence=None):
    weights = rng.integers(0, 3, n).astype(float) if weighted else None
    z = (rng.normal(size=(n, k)) * 4 + rng.normal(size=(n, 1)) * 10).astype(dtype)
    sample = Block(z, rng.integers(0, k, n), weights, k)
    return LinearProblem.of(in_memory(sample), Frame(0.7, -6.0, centred, confidence), full)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 7, 130, 260])
def test_sums_equal_the_numpy_twin(rng, k, full, dtype, centred, weighted):
    problem = random_problem(rng, k, full, dtype, centred, weighted)
    theta = rng.normal(size=problem.size) * 0.1
    loss, gradient, p = twin(problem, theta)
    sums = problem.sums(theta)
    close = {"rtol": 1e-3, "atol": 2e-3} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(sums.loss, loss, rtol=1e-5 if dtype == np.float32 else 1e-11)
    np.testing.assert_allclose(sums.gradient, gradient, **close)
    applied = problem.answer(theta)(problem.data.rows().logits)
    assert applied.dtype == dtype
    np.testing.assert_allclose(applied, p, atol=1e-5 if dtype == np.float32 else 1e-12)


def test_the_confidence_feature_equals_the_numpy_twin(rng):
    problem = random_problem(rng, 5, True, np.float64, True, True, confidence=(-3.0, 2.0))
    theta = rng.normal(size=problem.size) * 0.1
    loss, gradient, p = twin(problem, theta)
    sums = problem.sums(theta)
    assert sums.loss == pytest.approx(loss)
    np.testing.assert_allclose(sums.gradient, gradient, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(problem.answer(theta)(problem.data.rows().logits), p, atol=1e-12)


def twin_blocks(problem, theta):
    """The block of the Hessian of each class, over its row of D and its intercept."""
    p = twin(problem, theta)[2]
    rows = problem.data.rows()
    x = problem.frame.features(rows.logits, problem.frame.centres(rows)).astype(np.float64) - problem.shift
    blocks = []
    for c in range(problem.k):
        z = np.column_stack([x if problem.full else x[:, c], np.ones(len(x))])
        blocks.append((z * (rows.weight_array * p[:, c] * (1 - p[:, c]))[:, None]).T @ z)
    return np.array(blocks)


@pytest.mark.parametrize(("k", "full", "confidence"), [(4, False, None), (4, True, (-3.0, 2.0))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_class_blocks_equal_the_numpy_twin(rng, k, full, confidence, dtype):
    problem = random_problem(rng, k, full, dtype, True, True, confidence=confidence)
    theta = rng.normal(size=problem.size) * 0.1
    for block, expected in zip(problem.curvature(theta)[1].blocks, twin_blocks(problem, theta), strict=True):
        np.testing.assert_allclose(block, expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize(("k", "full"), [(4, False), (4, True), (40, True)])
def test_metrics_are_the_inverse_of_what_they_say(rng, k, full):
    problem = random_problem(rng, k, full, np.float64, True, True, n=400, confidence=(-3.0, 2.0) if full else None)
    theta, side = rng.normal(size=problem.size) * 0.1, problem.size // k
    own, between, last = rng.uniform(1, 5, 3)
    penalty = np.full((k, side), between)
    penalty[:, -1] = last
    penalty[np.arange(k), np.arange(k) if full else 0] = own
    sums, near = problem.curvature(theta)
    assert sums.loss == problem.sums(theta).loss
    np.testing.assert_array_equal(sums.gradient, problem.sums(theta).gradient)
    metric = near.metric(penalty.ravel())
    inverses = np.linalg.inv(twin_blocks(problem, theta) + penalty[:, :, None] * np.eye(side))
    if k > 32:
        inverses = shared_inverses(twin_blocks(problem, theta), penalty, between)
    vector = rng.normal(size=problem.size)
    expected = inverses @ vector.reshape(k, side, 1)
    np.testing.assert_allclose(metric.apply(vector), expected.ravel(), atol=1e-5)
    np.testing.assert_allclose(metric.diagonal(), np.diagonal(inverses, axis1=1, axis2=2).ravel(), atol=1e-5)


def shared_inverses(blocks, penalty, between):
    """Blocks seen along the directions of their sum, but for what is a class's own, which has a block apart."""
    k, side = penalty.shape
    turned = np.linalg.eigh(blocks.sum(axis=0))[1]
    inverses = []
    for c, block in enumerate(blocks):
        own = [c, *range(k, side)]
        inverse = (turned / (np.diag(turned.T @ block @ turned) + between)) @ turned.T
        inverse[own, :], inverse[:, own] = 0.0, 0.0
        inverse[np.ix_(own, own)] = np.linalg.inv(block[np.ix_(own, own)] + np.diag(penalty[c, own]))
        inverses.append(inverse)
    return np.array(inverses)


@pytest.mark.parametrize("full", [False, True])
def test_gradient_equals_finite_differences(rng, full):
    problem = random_problem(rng, 4, full, np.float64, full, True)
    theta = rng.normal(size=problem.size) * 0.2
    gradient, step = problem.sums(theta).gradient, 1e-6
    for i in range(problem.size):
        e = np.zeros(problem.size)
        e[i] = step
        slope = (problem.sums(theta + e).loss - problem.sums(theta - e).loss) / (2 * step)
        assert gradient[i] == pytest.approx(slope, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("k", [40, 260])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shared_curvature_is_what_the_blocks_say(rng, k, dtype):
    problem = random_problem(rng, k, True, dtype, True, True, confidence=(-3.0, 2.0))
    theta, directions = rng.normal(size=problem.size) * 0.1, rng.normal(size=(k + 2, 5))
    blocks = twin_blocks(problem, theta)
    along, own = problem.along(theta, directions)
    close = {"rtol": 2e-3, "atol": 2e-2} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(problem.moment(theta), blocks.sum(axis=0), **close)
    np.testing.assert_allclose(along, np.einsum("dr,kde,er->kr", directions, blocks, directions), **close)
    places = [[c, k, k + 1] for c in range(k)]
    expected = [block[np.ix_(at, at)] for block, at in zip(blocks, places, strict=True)]
    np.testing.assert_allclose(own, expected, **close)
    spread = problem.spread(problem.data.rows(), theta)
    np.testing.assert_allclose(spread.T @ spread, blocks.sum(axis=0), **close)


@pytest.mark.parametrize("full", [False, True])
def test_same_bits_for_any_number_of_threads(rng, full):
    problem = random_problem(rng, 40, full, np.float32, False, False, n=20_000)
    theta = rng.normal(size=problem.size) * 0.1
    before = get_threads()
    try:
        answers = []
        for threads in (1, 2, 5):
            set_threads(threads)
            answers.append(problem.sums(theta))
    finally:
        set_threads(before)
    for other in answers[1:]:
        assert other.loss == answers[0].loss
        np.testing.assert_array_equal(other.gradient, answers[0].gradient)


@pytest.mark.parametrize(("k", "full"), [(5, False), (5, True), (40, True), (260, True)])
def test_every_pass_merges(rng, k, full):
    whole = random_problem(rng, k, full, np.float64, True, True, n=400, confidence=(-3.0, 2.0) if full else None)
    rows, cuts = whole.data.rows(), [0, 1, 1, 30, 31, 250, 400]

    def blocks():
        return (rows.take(slice(a, b)) for a, b in pairwise(cuts))

    parts = LinearProblem.of(in_stream(blocks, k, k, np.float64), whole.frame, full)
    np.testing.assert_allclose(parts.shift, whole.shift, rtol=1e-12, atol=1e-12)
    theta = rng.normal(size=whole.size) * 0.1
    assert parts.sums(theta).loss == pytest.approx(whole.sums(theta).loss, rel=1e-12)
    np.testing.assert_allclose(parts.sums(theta).gradient, whole.sums(theta).gradient, atol=1e-9)
    penalty, vector = np.full(whole.size, 3.0), rng.normal(size=whole.size)
    answers = [problem.curvature(theta)[1].metric(penalty).apply(vector) for problem in (parts, whole)]
    np.testing.assert_allclose(*answers, atol=1e-9)


def test_rows_that_repeat_spread_as_rows_of_their_weight(rng):
    once = random_problem(rng, 40, True, np.float32, True, False, n=30).data.rows()
    twice = once.take(np.repeat(np.arange(30), 2))
    frame, vector = Frame(0.7, -6.0, True), rng.normal(size=40 * 41)
    answers = []
    for rows in (once.with_weights(np.full(30, 2.0)), twice):
        problem = LinearProblem.of(in_memory(rows), frame, True)
        answers.append(problem.curvature(np.zeros(problem.size))[1].metric(np.full(problem.size, 2.0)).apply(vector))
    np.testing.assert_allclose(*answers, rtol=1e-4, atol=1e-5)
