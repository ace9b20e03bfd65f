import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import overconfident

import calibrant
from calibrant import Hoki, _core
from calibrant.arrays import softmax
from calibrant.errors import InvalidInput
from calibrant.maps.hoki_design import bin_of, design, replay, weighted_std
from calibrant.maps.hoki_rows import Noise, Seen, rows_seen
from calibrant.passes import Block
from calibrant.testing import check_merging


def twin_shares(z, noise):
    """The definition: the share of noise vectors under which no class exceeds the top one."""
    top = z.argmax(axis=1)
    moved = z[:, :, None] + noise[None]
    return (moved.max(axis=1) <= np.take_along_axis(moved, top[:, None, None], 1)[:, 0]).mean(axis=1)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.integers(2, 300), st.integers(1, 100), st.integers(0, 10**6), st.floats(0.01, 30))
def test_pruned_shares_equal_the_plain_count(n, k, m, seed, scale):
    rng = np.random.default_rng(seed)
    z, noise = rng.normal(size=(n, k)) * 4, rng.normal(size=(k, m)) * scale
    shifted = z - z.max(axis=1, keepdims=True)
    one, two = (_core.keep_shares(z, *_core.pack_noise(noise), m, 0.7, threads) for threads in (1, 2))
    np.testing.assert_array_equal(two, twin_shares(shifted / 0.7, noise))
    assert (one == two).all()


@pytest.mark.parametrize(("law", "kind"), [("gaussian", 0), ("uniform", 1)])
def test_quadrature_is_the_limit_of_sampling(law, kind):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(40, 6)) * 3
    draws = 40_000
    base = rng.standard_normal((6, draws)) if law == "gaussian" else rng.random((6, draws))
    exact = _core.keep_probabilities(z, kind, 2.5, 256, 1)
    sampled = _core.keep_shares(z, *_core.pack_noise(base), draws, 2.5, 1)
    assert np.abs(sampled - exact).max() < 5 * 0.5 / np.sqrt(draws)


def test_quadrature_has_the_closed_form_for_two_classes():
    from scipy.stats import norm

    gaps = np.array([0.0, 0.5, 2.0, 9.0])
    z = np.stack([gaps, np.zeros(4)], axis=1)
    np.testing.assert_allclose(_core.keep_probabilities(z, 0, 1.5, 64, 1), norm.cdf(gaps / (1.5 * 2**0.5)), atol=1e-9)
    width = 4.0
    share = np.clip(gaps / width, 0, 1)
    np.testing.assert_allclose(_core.keep_probabilities(z, 1, width, 256, 1), 1 - (1 - share) ** 2 / 2, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(st.integers(20, 300), st.integers(0, 10**6), st.sampled_from(["accuracy", "confidence"]), st.integers(1, 20))
def test_the_fixed_point_has_no_calibration_error_on_its_bins(n, seed, init, bins):
    rng = np.random.default_rng(seed)
    kept = rng.integers(0, 101, size=n) / 100
    right = (rng.random(n) < 0.3 + 0.6 * kept).astype(float)
    start = np.full(n, right.mean()) if init == "accuracy" else rng.random(n)
    found = design(kept, right, np.ones(n), start, bins, 50)
    p = replay(found, kept, start)
    places = [bin_of(start, bins)]
    for step in range(1, len(found.alphas) + 1):
        part = type(found)(found.alphas[:step], found.betas[:step], found.filled[:step], True)
        places.append(bin_of(replay(part, kept, start), bins))
    if (places[-1] == places[-2]).all():  # no row moved in the last step: the paper's stopping rule
        assert np.abs(np.bincount(places[-1], right - p, bins)).sum() / n < 1e-12


def test_hoki_keeps_labels_and_replays_what_it_learnt(problem):
    z, y = problem
    hoki = Hoki(random_state=0).fit(z, y)
    p = hoki.predict_proba(z)
    confidence = hoki.predict_confidence(z)
    rows, top = np.arange(len(z)), z.argmax(axis=1)
    assert (hoki.predict(z) == top).all()
    inside = np.clip(confidence, hoki.margin_, 1 - hoki.margin_)
    np.testing.assert_allclose(p[rows, top], inside)
    rest = np.delete(p, 0, axis=1)[top == 0]
    raw = np.exp(z[top == 0] - z[top == 0].max(axis=1, keepdims=True))[:, 1:]
    np.testing.assert_allclose(rest / rest.sum(1, keepdims=True), raw / raw.sum(1, keepdims=True), rtol=1e-9)
    right = (top == y).astype(float)
    places = bin_of(confidence, 15)
    assert np.abs(np.bincount(places, right - confidence, 15)).sum() / len(y) < 5e-3


def test_the_bound_is_theorem_two_on_the_bins_of_the_fit(problem):
    z, y = problem
    half = len(z) // 2
    hoki = Hoki(noise=("gaussian", 0.0, 2.0), bins=8, classes=np.arange(z.shape[1]) + 3).fit(z[:half], y[:half] + 3)
    p, right = hoki.predict_confidence(z[half:]), z[half:].argmax(axis=1) == y[half:]
    error = 0.0
    for j in range(8):
        rows = (p > j / 8) & (p <= (j + 1) / 8)
        error += abs((right[rows] - p[rows]).sum()) / len(p)
    slack = 8 * np.sqrt(2 / len(p) * (2 * np.log(2) - np.log(0.1)))
    assert hoki.calibration_error_bound(z[half:], y[half:] + 3, delta=0.1) == pytest.approx(error + slack)
    for bad in (0.0, 1.0, 2.0):
        with pytest.raises(InvalidInput, match="delta"):
            hoki.calibration_error_bound(z[half:], y[half:] + 3, delta=bad)
    with pytest.raises(InvalidInput):
        hoki.calibration_error_bound(z[half:], y[half:-1] + 3)


def test_given_noise_ignores_a_common_mean(problem):
    z, y = problem
    a = Hoki(noise=("gaussian", 0.0, 2.0), random_state=1).fit(z, y)
    b = Hoki(noise=("gaussian", 15.0, 2.0), random_state=1).fit(z, y)
    assert (a.predict_confidence(z) == b.predict_confidence(z)).all()
    c = Hoki(noise=("uniform", -3.0, 1.0), transformations=None).fit(z, y)
    d = Hoki(noise=("uniform", 0.0, 4.0), transformations=None).fit(z, y)
    assert (c.predict_confidence(z) == d.predict_confidence(z)).all()


def test_sampling_and_quadrature_tell_the_same_story(problem):
    z, y = problem
    sampled = Hoki(noise=("gaussian", 0.0, 3.0), transformations=20_000, bins=1).fit(z, y).predict_confidence(z)
    exact = Hoki(noise=("gaussian", 0.0, 3.0), transformations=None, bins=1).fit(z, y).predict_confidence(z)
    assert np.abs(sampled - exact).max() < 0.02


@pytest.mark.parametrize(
    "noise",
    [
        "gaussian",
        ("gaussian", 0.0, 0.0),
        ("uniform", 2.0, 1.0),
        ("cauchy", 0, 1),
        ("gaussian", 0.0),
        ("gaussian", "0", 1.0),
        ("gaussian", np.inf, 1.0),
        None,
    ],
)
def test_bad_noise_is_refused(noise, problem):
    with pytest.raises(InvalidInput, match="noise is not valid"):
        Hoki(noise=noise).fit(*problem)


def test_hoki_calibrates_real_outputs(shared_data):
    from calibrant.metrics import ece

    c = np.load(shared_data / "cifar100_resnet50.npz")
    hoki = Hoki(random_state=0).fit(c["logits_val"], c["labels_val"])
    confidence = hoki.predict_confidence(c["logits_test"])
    right = hoki.predict(c["logits_test"]) == c["labels_test"]
    assert ece(right, confidence) < 0.025
    assert confidence.std() > 0.05


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("transformations", [100, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_of_any_scale_has_its_digits(transformations, dtype):
    rng = np.random.default_rng(3)
    z, y = rng.normal(size=(200, 4)), rng.integers(0, 4, 200)
    for scale in (1e-300, 1e-45, 1e300):
        hoki = Hoki(("gaussian", 0.0, scale), transformations).fit(z.astype(dtype), y)
        assert hoki.scale_ == scale
        assert np.isfinite(hoki.predict_proba(z.astype(dtype))).all()
    if dtype == np.float64:
        found = [Hoki(transformations=transformations).fit(z * s, y) for s in (1.0, 2.0**-300, 2.0**300)]
        for other, s in zip(found[1:], (2.0**-300, 2.0**300), strict=True):
            assert (other.predict_confidence(z * s) == found[0].predict_confidence(z)).all()
    with pytest.raises(InvalidInput, match="noise"):
        Hoki(("uniform", -1.5e308, 1.5e308)).fit(z, y)


def fitted(hoki, *given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calibrant.CalibrationWarning)
        return hoki.fit(*given)


@pytest.mark.parametrize("n", [200, 6000])
@pytest.mark.parametrize("weighted", [False, True])
def test_neither_order_nor_blocks_change_a_bit(n, weighted):
    z, y = overconfident(n, 4)
    w = np.random.default_rng(1).random(n) if weighted else np.ones(n)
    whole = fitted(Hoki(), z, y, w)
    order = np.random.default_rng(2).permutation(n)
    cuts = [0, 1, n // 3, n // 3, n - 5, n]

    def batches():
        for first, last in pairwise(cuts):
            yield z[order][first:last], y[order][first:last], w[order][first:last]

    for other in (fitted(Hoki(), z[order], y[order], w[order]), fitted(Hoki(), calibrant.scan(batches))):
        assert (other.law_, other.scale_) == (whole.law_, whole.scale_)
        assert (other.accuracy_, other.margin_) == (whole.accuracy_, whole.margin_)
        assert other.alphas_.tobytes() == whole.alphas_.tobytes()
        assert other.predict_proba(z).tobytes() == whole.predict_proba(z).tobytes()
        a, b = other.fit_report_, whole.fit_report_
        assert (a.loss_before, a.loss_after, a.held_out_after, a.held_out_error, a.details) == (
            b.loss_before, b.loss_after, b.held_out_after, b.held_out_error, b.details)  # fmt: skip
        assert a.harms == b.harms


def test_merging_follows_the_rule_for_all_maps():
    check_merging(Hoki())


def test_a_row_of_weight_two_is_the_row_twice():
    z, y = overconfident(300, 4)
    w = np.where(np.arange(300) % 3 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(300), w.astype(int))
    heavy, twice = fitted(Hoki(), z, y, w), fitted(Hoki(), z[rows], y[rows])
    assert (heavy.law_, heavy.scale_) == (twice.law_, pytest.approx(twice.scale_, rel=1e-12))
    np.testing.assert_allclose(heavy.predict_proba(z), twice.predict_proba(z), atol=1e-9)
    assert heavy.fit_report_.held_out_after == pytest.approx(twice.fit_report_.held_out_after, rel=1e-6)


def test_losses_are_those_of_the_answers(problem):
    z, y = problem
    hoki = fitted(Hoki(), z, y)
    p = hoki.predict_proba(z)
    assert hoki.fit_report_.loss_after == pytest.approx(calibrant.metrics.nll(y, p), rel=1e-9)
    raw = calibrant.Identity().fit(z, y).predict_proba(z)
    assert hoki.fit_report_.loss_before == pytest.approx(calibrant.metrics.nll(y, raw), rel=1e-9)


def test_a_confidence_that_rounds_to_one_leaves_a_share_for_the_label():
    z = np.array([[800.0, 0.0, -1.0], [0.0, 50.0, 2.0]])
    seen = Seen.of(rows_seen(Block(z, np.array([2, 2]), None, 3), Noise("gaussian", 1.0, None)))
    share = np.sort(seen.rest)
    np.testing.assert_allclose(share, np.sort([0.5, np.exp(2) / (1 + np.exp(2))]), rtol=1e-9)  # nothing left: evenly
    assert (seen.losses(np.array([0.9, 0.9]), 0.01) > 0).all()


def test_parameters_are_counted(problem):
    z, y = problem
    hoki = Hoki(("gaussian", 0.0, 2.0), bins=4, max_iterations=3).fit(z, y)
    assert hoki.n_parameters_ == 2 * hoki.filled_.sum() + 1
    assert fitted(Hoki(bins=1), z, y).n_parameters_ == 2 + 1 + 2


def twin_spread(z, softmax, shares, found, start, margin):
    """The top class at its confidence, the others as softmax without it has them, scaled."""
    rows, top = np.arange(len(z)), z.argmax(axis=1)
    begun = softmax[rows, top].astype(np.float64) if start is None else np.full(len(z), start)
    confidence = np.clip(replay(found, shares, begun), margin, 1 - margin)
    others = z.astype(np.float64)
    others[rows, top] = -np.inf
    p = np.exp(others - others.max(axis=1, keepdims=True))
    p *= ((1 - confidence) / p.sum(axis=1))[:, None]
    p[rows, top] = confidence
    return p


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(2, 50), st.integers(0, 10**6), st.sampled_from([None, 0.4]), st.integers(1, 9))
def test_confidences_are_spread_as_said(n, k, seed, start, bins):
    rng = np.random.default_rng(seed)
    z, shares = rng.normal(size=(n, k)) * 10.0 ** rng.integers(0, 4), rng.random(n)
    right = (rng.random(n) < shares).astype(float)
    found = design(shares, right, np.ones(n), np.full(n, 0.4), bins, 5)
    for dtype, close in ((np.float64, 1e-12), (np.float32, 1e-5)):
        rows = z.astype(dtype)
        out = softmax(rows)
        wanted = twin_spread(rows, out, shares, found, start, 0.01)
        _core.spread_confidence(rows, shares, found.alphas, found.betas, found.filled, start, 0.01, 2, out)
        np.testing.assert_allclose(out, wanted, rtol=0, atol=close)


def test_the_core_refuses_noise_and_steps_of_other_shapes():
    z, noise = np.zeros((3, 4)), np.zeros((4, 40))
    packed, reach = _core.pack_noise(noise)
    for bad in ((packed[:, :3], reach, 40), (packed, reach[:1], 40), (packed, reach, 10), (packed, reach, 0)):
        with pytest.raises(ValueError, match="fit"):
            _core.keep_shares(z, *(np.ascontiguousarray(part) for part in bad[:2]), bad[2], 1.0, 1)
    steps = np.zeros((2, 5))
    with pytest.raises(ValueError, match="steps"):
        _core.spread_confidence(z, np.zeros(3), steps, steps, np.zeros((1, 5), bool), None, 0.1, 1, z.copy())
    with pytest.raises(ValueError, match="share"):
        _core.spread_confidence(z, np.zeros(2), steps, steps, np.zeros((2, 5), bool), None, 0.1, 1, z.copy())


def test_a_pickled_map_carries_its_noise_once(problem):
    z, y = problem
    hoki = fitted(Hoki(), z, y)
    before = len(pickle.dumps(hoki))
    hoki.predict_proba(z.astype(np.float32))
    assert len(pickle.dumps(hoki)) == before < 1.2 * hoki.noise_.nbytes
    assert pickle.loads(pickle.dumps(hoki)).predict_proba(z).tobytes() == hoki.predict_proba(z).tobytes()


def test_the_deviation_of_weighted_values_is_that_of_rows(rng):
    values, counts = rng.normal(size=30) + 4, rng.integers(1, 4, 30)
    assert weighted_std(values, counts * 1.0) == pytest.approx(np.repeat(values, counts).std())


@pytest.mark.parametrize("kept", [0.0, 1.0])
def test_a_bin_of_one_sort_of_perturbations_takes_its_accuracy_for_both(kept):
    right, weights = np.array([1.0, 0.0, 1.0, 1.0]), np.array([1.0, 2.0, 1.0, 0.5])
    found = design(np.full(4, kept), right, weights, np.full(4, 0.5), 2, 1)
    accuracy = weights @ right / weights.sum()
    assert found.filled.tolist() == [[True, False]]
    assert found.alphas[0, 0] == found.betas[0, 0] == pytest.approx(accuracy)
