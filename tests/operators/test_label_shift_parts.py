"""The test of label shift, intervals of frequencies and the correction of biases, against loops and differences."""

import numpy as np
import pytest
from scipy.stats import chi2

from calibrant.operators import prior_shift
from calibrant.operators._label_shift import bins_of, find_frequencies, label_shift_test
from calibrant.passes import Block


@pytest.mark.parametrize("seed", range(6))
def test_bins_of_new_rows_are_compared_with_those_of_labelled_ones(seed):
    """Σ(seen - expected)²/variance over bins of five expected rows at least, and one of all others."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 40, (9, 3)) * 1.0 + (np.arange(27).reshape(9, 3) % 2)
    table[[2, 5]] *= 0.02
    priors, n = rng.dirichlet(np.ones(3) * 4), 60
    bins, w = rng.integers(0, 9, n), rng.choice([0.5, 1.0, 2.0], n)
    rows = w.sum() ** 2 / (w**2).sum()
    gaps, variances, others = [], [], [0.0, 1 / rows**2]
    for b in range(9):
        chances = [table[b, k] / table[:, k].sum() for k in range(3)]
        expected = sum(q * c for q, c in zip(priors, chances, strict=True))
        spread = expected / rows + sum(
            q**2 * c / table[:, k].sum() for k, (q, c) in enumerate(zip(priors, chances, strict=True))
        )
        gap = w[bins == b].sum() / w.sum() - expected
        if expected * rows >= 5:
            gaps.append(gap)
            variances.append(spread)
        else:
            others = [others[0] + gap, others[1] + spread]
    statistic = sum(g * g / v for g, v in zip([*gaps, others[0]], [*variances, others[1]], strict=True))
    found = label_shift_test(table, priors, bins, w)
    assert found.statistic == pytest.approx(statistic)
    assert found.degrees == len(gaps)
    assert found.p_value == pytest.approx(chi2.sf(statistic, len(gaps)))
    assert 2 <= len(gaps) < 9


def test_a_bin_of_five_expected_rows_stands_alone():
    table, priors = np.array([[5.0], [15.0]]), np.ones(1)
    assert label_shift_test(table, priors, np.arange(20) % 2, np.ones(20)).degrees == 2
    assert label_shift_test(table, priors, np.arange(19) % 2, np.ones(19)).degrees == 1
    assert label_shift_test(table, priors, np.zeros(3, int), np.ones(3)).degrees == 1


def test_rows_lie_in_the_bins_of_their_top_label():
    p = np.array([[0.7, 0.3], [0.5, 0.5], [0.2, 0.8], [0.4, 0.6], [0.9, 0.1]])
    assert bins_of(p, np.array([[0.6, 0.8], [0.6, 0.9]])).tolist() == [1, 0, 4, 4, 2]


@pytest.mark.parametrize("pseudo", [0.0, 2.0])
def test_intervals_are_sandwiches_of_scores_within_the_simplex(pseudo):
    """One class against another: the derivative of the mean log-likelihood in q is a mean of row scores."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet([2.0, 2.0], 400)
    w = rng.choice([0.5, 1.0, 2.0], 400)
    source = np.array([0.6, 0.4])
    found = find_frequencies(p, source, w, pseudo)
    share, prior = w / w.sum(), pseudo * 2 * source / w.sum()
    ratio, q = p / source, found.values
    score = (ratio[:, 0] - ratio[:, 1]) / (ratio @ q)
    assert share @ score + prior[0] / q[0] - prior[1] / q[1] == pytest.approx(0, abs=1e-6)
    bend = share @ score**2 + (prior / q**2).sum()
    spread = (share**2) @ score**2 - (share @ share) * (share @ score) ** 2
    reach = 1.959963984540054 * np.sqrt(spread) / bend
    np.testing.assert_allclose(found.interval, np.clip(np.column_stack([q - reach, q + reach]), 0, 1), rtol=1e-6)
    assert found.certificate == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(find_frequencies(p, source, w * 8, pseudo * 8).values, q, atol=1e-9)


def test_biases_have_the_derivatives_of_their_loss():
    rng = np.random.default_rng(5)
    block = Block(rng.normal(size=(30, 3)) * 2, rng.integers(0, 3, 30), rng.choice([0.5, 2.0], 30), 3)
    at = np.array([0.8, 0.1, -0.3, 0.2])
    logs = block.logits - np.log(np.exp(block.logits).sum(axis=1, keepdims=True))
    z = at[0] * logs + at[1:]
    loss = block.weight_array @ (np.log(np.exp(z).sum(axis=1)) - z[np.arange(30), block.labels])
    value, steep, pull = prior_shift.bias_sums(block, at[0], at[1:])
    assert value == pytest.approx(loss)
    found = np.r_[steep, pull]
    for i, away in enumerate(1e-6 * np.eye(4)):
        up, down = (prior_shift.bias_sums(block, (at + s * away)[0], (at + s * away)[1:])[0] for s in (1, -1))
        assert found[i] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-5)


def test_thirds_of_confidences_are_those_of_each_top_label_with_three_rows():
    p = np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8], [0.45, 0.55]])
    edges = prior_shift._edges(p, np.ones(5))
    thirds = [1 / 3, 2 / 3]
    lower = 1 - 1e-6  # so that rows of an edge's value are above it in single precision too
    np.testing.assert_allclose(edges[0], np.quantile([0.9, 0.6, 0.7], thirds) * lower)
    np.testing.assert_allclose(edges[1], np.quantile(p.max(axis=1), thirds) * lower)
