import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.cells.pairs import Cells, Pairs
from calibrant.errors import InvalidInput
from calibrant.metrics.estimators.calibration_error import ESTIMATORS
from calibrant.metrics.estimators.sweep import sweep_cells
from calibrant.metrics.inference.replicates import Replicates, from_rows, prefix
from calibrant.metrics.inference.resampling import resamples_of


@given(st.integers(0, 10**6), st.integers(2, 60), st.sampled_from([1, 2, "max"]))
@settings(max_examples=25, deadline=None)
def test_many_samples_agree_with_one_by_one(seed, n, norm):
    rng = np.random.default_rng(seed)
    scores = rng.random((4, n))
    outcomes = rng.random((4, n)) < scores**2
    many = from_rows(scores, outcomes)
    for edges in ("equal_width", "equal_mass"):
        binned, (swept, chosen) = many.binned(7, edges, norm), many.sweep(edges, norm)
        for i in range(4):
            pairs = Pairs(scores[i], outcomes[i].astype(float))
            assert binned[i] == pytest.approx(ESTIMATORS["binned"](pairs, norm=norm, bins=7, edges=edges), abs=1e-12)
            plain = sweep_cells(pairs.cells, norm=norm, edges=edges)
            assert swept[i] == pytest.approx(plain.error, abs=1e-12)
            assert chosen[i] == plain.bins


def test_debiased_and_cumulative_errors_agree_with_one_by_one(rng):
    scores = rng.random((5, 90))
    scores[2] = scores[2].round(1)  # ties
    outcomes = rng.random((5, 90)) < scores
    many = from_rows(scores, outcomes)
    for i in range(5):
        pairs = Pairs(scores[i], outcomes[i].astype(float))
        assert many.debiased(15)[i] == pytest.approx(ESTIMATORS["debiased"](pairs), abs=1e-12)
        assert many.ks()[i] == pytest.approx(ESTIMATORS["ks"](pairs), abs=1e-12)
        assert many.ecce()[i] == pytest.approx(ESTIMATORS["ecce"](pairs), abs=1e-12)


def test_weighted_groups_follow_the_conventions_of_plain_edges(rng):
    scores, weights = np.sort(rng.choice(np.linspace(0, 1, 11), 9, replace=False)), rng.integers(1, 5, 9)
    outcomes = rng.integers(0, weights + 1)
    many = Replicates(
        scores[None],
        prefix(weights[None]).astype(int),
        prefix(outcomes[None]),
        prefix((weights * scores - outcomes)[None]),
    )
    rows = np.repeat(np.arange(9), weights)
    happened = np.concatenate([np.arange(w) < e for w, e in zip(weights, outcomes, strict=True)]).astype(float)
    pairs = Pairs(scores[rows], happened)
    for edges in ("equal_width", "equal_mass"):
        for bins in (1, 2, 5, 10):
            plain = ESTIMATORS["binned"](pairs, bins=bins, edges=edges)
            assert many.binned(bins, edges)[0] == pytest.approx(plain, abs=1e-12)
        assert many.sweep(edges)[0][0] == pytest.approx(ESTIMATORS["sweep"](pairs, edges=edges), abs=1e-12)


def test_unknown_edges_are_refused():
    with pytest.raises(InvalidInput, match="no such edges"):
        from_rows(np.array([[0.1, 0.2]]), np.array([[True, False]])).binned(3, "kmeans")


def test_groups_that_were_not_drawn_are_passed_over():
    many = Replicates(
        np.array([[0.1, 0.5, 0.9]]),
        np.array([[0, 2, 2, 4]]),
        np.array([[0.0, 0.0, 0.0, 2.0]]),
        np.array([[0.0, 0.2, 0.2, 0.0]]),
    )
    pairs = Pairs(np.array([0.1, 0.1, 0.9, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]))
    assert many.sweep()[0][0] == pytest.approx(ESTIMATORS["sweep"](pairs))


def test_fractional_weights_follow_plain_edges(rng):
    scores, weights = np.sort(rng.random(40)), rng.random(40) / 40
    outcomes = (rng.random(40) < scores).astype(float)
    many = Replicates(
        scores[None],
        prefix(weights[None]),
        prefix((weights * outcomes)[None]),
        prefix((weights * (scores - outcomes))[None]),
    )
    pairs = Pairs(scores, outcomes, weights)
    for edges in ("equal_width", "equal_mass"):
        for bins in (2, 5, 9):
            plain = ESTIMATORS["binned"](pairs, bins=bins, edges=edges)
            assert many.binned(bins, edges)[0] == pytest.approx(plain, abs=1e-12)


def test_a_few_groups_of_many_rows_are_swept_from_group_to_group(rng):
    """A hundred thousand tied scores are no reason to try a hundred thousand bins one by one."""
    scores, weights = np.sort(rng.random(12)), np.r_[np.ones(6, int), 100_000, np.ones(5, int)]
    outcomes = np.sort(rng.random((3, 12)), axis=1).round(1) * weights
    outcomes = outcomes.round()
    many = Replicates(
        scores[None], prefix(weights[None]).astype(int), prefix(outcomes), prefix(weights * scores - outcomes)
    )
    for edges in ("equal_width", "equal_mass"):
        values, chosen = many.sweep(edges)
        for i in range(3):
            plain = sweep_cells(Cells(scores, weights * 1.0, outcomes[i]), edges=edges)
            assert (values[i], chosen[i]) == pytest.approx((plain.error, plain.bins))


def test_more_rows_than_a_block_holds_are_resampled_one_at_a_time(rng, monkeypatch):
    monkeypatch.setattr("calibrant.metrics.inference.resampling.BLOCK", 40)
    p = rng.random(101)
    blocks = list(resamples_of(Pairs(p, (rng.random(101) < p) * 1.0), 19, np.random.default_rng(0)))
    assert [many.count for many in blocks] == [1] * 19


@pytest.mark.parametrize("norm", [1, 2, "max"])
def test_samples_of_few_scores_agree_with_one_by_one(norm):
    """Ties, scores at the ends and on edges, one row and two."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, steps = int(rng.integers(1, 13)), int(rng.choice([2, 3, 5, 16]))
        scores, outcomes = rng.integers(0, steps + 1, (3, n)) / steps, rng.random((3, n)) < 0.5
        complements = 1 - scores if seed % 2 else None
        many = from_rows(scores, outcomes, complements)
        pairs = [Pairs(*row) for row in zip(scores, outcomes.astype(float), strict=True)]
        for edges in ("equal_width", "equal_mass"):
            for bins in (1, 2, 4, 15):
                plain = [ESTIMATORS["binned"](one, norm=norm, bins=bins, edges=edges) for one in pairs]
                np.testing.assert_allclose(many.binned(bins, edges, norm), plain, atol=1e-12)
            values, chosen = many.sweep(edges, norm)
            plain = [sweep_cells(one.cells, norm=norm, edges=edges) for one in pairs]
            np.testing.assert_allclose(values, [one.error for one in plain], atol=1e-12)
            if complements is None:
                assert chosen.tolist() == [one.bins for one in plain]
        for name, found in (("ks", many.ks()), ("ecce", many.ecce())):
            np.testing.assert_allclose(found, [ESTIMATORS[name](one) for one in pairs], atol=1e-12)
        if n > 1:
            for bins in (1, 3, 15):
                plain = [ESTIMATORS["debiased"](one, bins=bins, edges="equal_mass") for one in pairs]
                np.testing.assert_allclose(many.debiased(bins), plain, atol=1e-9)


def test_scores_that_round_to_one_are_ordered_by_what_is_missing():
    """1e-20 and 1e-18 short of one: floats know no difference, their complements do."""
    complements = np.array([[1e-18, 1e-20, 0.5, 1e-19]])
    many = from_rows(1 - complements, np.array([[True, False, True, True]]), complements)
    wanted = np.cumsum([0, -0.5, -1e-18, -1e-19, 1 - 1e-20])
    np.testing.assert_allclose(many.excess[0], wanted, rtol=1e-12)
    assert many.events[0].tolist() == [0, 1, 2, 3, 3]
    assert many.joins is None


@pytest.mark.parametrize("tied", [False, True])
def test_outcomes_that_never_fall_are_swept_bin_by_bin_to_a_bound_only(rng, monkeypatch, tied):
    """A day without an event: each number of bins up to the number of rows, of all samples, took minutes."""
    scores = rng.random((3, 400))
    scores = scores.round(2) if tied else scores
    outcomes = np.stack([np.zeros(400, bool), scores[1] > 0.5, rng.random(400) < scores[2]])
    looked, sums = [], Replicates.sums
    monkeypatch.setattr(Replicates, "sums", lambda self, bins, *rest: (looked.append(bins), sums(self, bins, *rest))[1])
    swept, chosen = from_rows(scores, outcomes).sweep("equal_mass")
    assert max(looked) <= 64
    for i in range(3):
        plain = sweep_cells(Pairs(scores[i], outcomes[i].astype(float)).cells)
        assert (swept[i], chosen[i]) == (pytest.approx(plain.error, abs=1e-12), plain.bins)
    assert chosen[:2].tolist() == [400, 400]
