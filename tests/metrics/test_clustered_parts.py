"""Sums over clusters, against loops over pairs of rows as the definitions have them."""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.stats import chi2

from calibrant.cells.pairs import Pairs
from calibrant.metrics.inference import clustered
from calibrant.metrics.inference.clustered import clustered_score, clusters_of


def rows(seed, n=17, groups=5, weighed=True):
    rng = np.random.default_rng(seed)
    scores = rng.choice(np.linspace(0.05, 0.9, 8), n)
    weights = rng.choice([0.5, 1.0, 3.0], n) if weighed else None
    design = np.column_stack([np.ones(n), rng.normal(size=n)])
    clusters = rng.integers(0, groups, n)
    outcomes = (rng.random(groups)[clusters] < scores) * 1.0  # rows of a cluster go together
    return Pairs(scores, outcomes, weights, clusters=clusters), design


def by_pairs(pairs, design):
    """Return the covariance of Σ w(y - s)d of rows alone, and what is added where rows of a cluster share all."""
    s, w = pairs.scores, pairs.weight_array
    alone, together = np.zeros((2, 2)), np.zeros((2, 2))
    for i in range(pairs.n):
        for j in range(pairs.n):
            both = w[i] * w[j] * np.outer(design[i], design[j]) * (min(s[i], s[j]) - s[i] * s[j])
            if i == j:
                alone += both
            elif pairs.clusters[i] == pairs.clusters[j]:
                together += both
    return alone, together


def share(pairs, residuals, added):
    """Return the products of different rows of a cluster, over what they are where these share all."""
    same = pairs.clusters[:, None] == pairs.clusters
    products = sum(residuals[i] * residuals[j] for i, j in np.argwhere(same) if i != j)
    return float(np.clip(products / added, 0, 1))


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_covariances_are_sums_over_pairs_of_rows(seed, weighed):
    pairs, design = rows(seed, weighed=weighed)
    known = clusters_of(pairs)
    alone, together = by_pairs(pairs, design)
    np.testing.assert_allclose(known.alone(design), alone, rtol=1e-10)
    np.testing.assert_allclose(known.together(design), together, rtol=1e-10, atol=1e-12)
    residuals = np.random.default_rng(seed).normal(size=(6, pairs.n))
    wanted = [share(pairs, one, together[0, 0]) for one in residuals]
    np.testing.assert_allclose(known.share_of(residuals), wanted, rtol=1e-10)
    assert known.few
    found = known.spread(design, residuals)
    np.testing.assert_allclose(found, [alone + one * together for one in wanted], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("few", [True, False])
def test_raos_statistic_is_a_quadratic_form_of_the_sums(monkeypatch, seed, few):
    """uᵀV⁻¹u with V by pairs of rows where events are few, and by sums of clusters where they are many.

    By pairs of rows it has directions in which companions would make the variance less; these are left as alone.
    """
    monkeypatch.setattr(clustered, "MANY", 1e9 if few else 0.0)
    pairs, design = rows(seed)
    residuals = pairs.weight_array * (pairs.outcomes - pairs.scores)
    alone, together = by_pairs(pairs, design)
    if few:
        values, vectors = eigh(together, alone)
        back = np.linalg.inv(vectors)
        added = share(pairs, residuals, together[0, 0]) * np.diag(np.maximum(values, 0))
        spread = back.T @ (np.eye(2) + added) @ back
    else:
        sums = [residuals[pairs.clusters == g] @ design[pairs.clusters == g] for g in np.unique(pairs.clusters)]
        spread = sum(np.outer(one, one) for one in sums)
    ahead = residuals @ design
    seen, pvalue, floor = clustered_score(pairs, design, 49, np.random.default_rng(seed))
    assert seen == pytest.approx(ahead @ np.linalg.solve(spread, ahead), rel=1e-9)
    assert floor == 1 / 50
    assert floor <= pvalue <= 1


def test_a_direction_without_variance_counts_for_nothing(monkeypatch):
    """A column twice says nothing new: the statistic and its law are those of one."""
    monkeypatch.setattr(clustered, "MANY", 0.0)
    pairs, design = rows(0)
    one = clustered_score(pairs, design, 19, np.random.default_rng(1))
    twice = clustered_score(pairs, np.column_stack([design, design[:, 1]]), 19, np.random.default_rng(1))
    assert twice == pytest.approx(one)
    monkeypatch.setattr(clustered, "MOST_DRAWN", 1)
    seen, pvalue, floor = clustered_score(pairs, np.column_stack([design, design[:, 1]]), 19, np.random.default_rng(1))
    assert (pvalue, floor) == (pytest.approx(chi2.sf(seen, 2)), 0.0)


def test_rows_without_a_companion_share_nothing():
    pairs, _ = rows(3)
    alone = clusters_of(Pairs(pairs.scores, pairs.outcomes, pairs.weights, clusters=np.arange(pairs.n)))
    assert alone.share_of(np.ones((2, 3, pairs.n))).tolist() == np.zeros((2, 3)).tolist()


@pytest.mark.parametrize("few", [True, False])
def test_drawn_outcomes_are_true_to_scores_and_go_together(monkeypatch, few):
    """Few events: drawn by the scores, with the covariance of their share. Many: each cluster turned over or not."""
    monkeypatch.setattr(clustered, "MANY", 1e9 if few else 0.0)
    monkeypatch.setattr(clustered, "BLOCK", 17 * 1000)
    pairs, _ = rows(5)
    known = clusters_of(pairs)
    w, s, y = pairs.weight_array, pairs.scores, pairs.outcomes
    blocks = list(known.drawn(4500, np.random.default_rng(0)))
    assert [len(block) for block in blocks] == [1000] * 4 + [500]
    drawn = np.concatenate(blocks)
    assert drawn.mean(axis=0) == pytest.approx(w * s, abs=0.15)
    same = pairs.clusters[:, None] == pairs.clusters
    if few:
        assert set(np.unique(drawn / w)) == {0.0, 1.0}
        ones = np.ones((pairs.n, 1))
        chance = float(known.share_of(w * (y - s)))
        assert chance > 0.05
        low = np.minimum(s[:, None], s) - np.outer(s, s)
        wanted = np.outer(w, w) * low * np.where(np.eye(pairs.n) > 0, 1, chance * same)
        assert np.cov(drawn.T) == pytest.approx(wanted, abs=0.25)
        assert float(drawn.sum(axis=1).var()) == pytest.approx(
            float(known.spread(ones, (w * (y - s))[None])[0, 0, 0]), rel=0.1
        )
    else:
        turned = np.isclose(drawn, 2 * w * s - w * y)
        assert (turned | np.isclose(drawn, w * y)).all()
        for cluster in np.unique(pairs.clusters):
            own = turned[:, pairs.clusters == cluster]
            assert (own == own[:, :1]).all()
            assert own.mean() == pytest.approx(0.5, abs=0.05)
