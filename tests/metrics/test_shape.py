"""The verdict sees the shape of a miscalibration, and leaves calibrated probabilities alone at its stated rate."""

from collections import Counter

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant
from calibrant.cells.pairs import Pairs
from calibrant.metrics.inference import shape
from calibrant.metrics.inference.shape import shape_of
from calibrant.metrics.inference.testing import sweep_test


def rare(rng, n):
    return rng.beta(1, 30, n)


def even(rng, n):
    return rng.beta(2, 3, n)


def wide(rng, n):
    return expit(rng.normal(-0.3, 2.4, n))


def narrow(rng, n):
    return expit(rng.normal(-0.1, 0.6, n))


def uniform(rng, n):
    return rng.random(n)


# What is said, how often it comes true, and what that is called.
KINDS = {
    "rare, twice too high": (rare, lambda p: p / 2, "too_high"),
    "too high": (even, lambda p: expit(logit(p) - 0.6), "too_high"),
    "too low": (even, lambda p: expit(logit(p) + 0.6), "too_low"),
    "too extreme": (wide, lambda p: expit(logit(p) / 2), "too_extreme"),
    "too timid": (narrow, lambda p: expit(2 * logit(p)), "too_timid"),
    "upside down": (uniform, lambda p: 1 - p, "upside_down"),
    "a dent": (uniform, lambda p: np.where((p > 0.4) & (p < 0.6), p - 0.3, p), "in_places"),
    "a wave": (uniform, lambda p: np.clip(p + 0.15 * np.sin(4 * np.pi * p), 0, 1), "in_places"),
}


def drawn(kind, n, seed):
    said, truth, _ = KINDS[kind]
    rng = np.random.default_rng([seed, n])
    p = said(rng, n)
    return Pairs(p, (rng.random(n) < truth(p)).astype(float))


def test_what_does_not_depend_on_the_score_is_not_upside_down():
    kinds = Counter()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        kinds[shape_of(Pairs(rng.random(800), (rng.random(800) < 0.5).astype(float))).kind] += 1
    assert kinds["upside_down"] <= 4  # of some 20 whose slope is below 0, one in 20 clearly
    assert kinds["too_extreme"] >= 30


def test_weights_do_not_hide_the_shape_of_tied_confidences(rng):
    said = rng.integers(0, 11, 900) / 10
    came_true = (rng.random(900) < 0.2 + 0.6 * said).astype(float)
    weights = rng.integers(0, 4, 900) + 0.5
    assert shape_of(Pairs(said, came_true)).kind == "too_extreme"
    assert shape_of(Pairs(said, came_true, weights)).kind == "too_extreme"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "least"), [(1500, 0.8), (6000, 0.95), (40_000, 1.0)])
def test_each_kind_is_named(kind, n, least):
    repeats = 5 if n > 10_000 else 20
    found = Counter(shape_of(drawn(kind, n, seed)).kind for seed in range(repeats))
    assert found[KINDS[kind][2]] >= least * repeats


def test_a_few_rows_name_the_kind_of_a_large_gap():
    found = Counter(shape_of(drawn("too extreme", 200, seed)).kind for seed in range(20))
    assert found["too_extreme"] >= 14
    assert Counter(shape_of(drawn("too low", 200, seed)).kind for seed in range(20))["too_low"] >= 16


def test_places_are_where_they_are():
    (place,) = shape_of(drawn("a dent", 20_000, 0)).ranges
    assert place.low == pytest.approx(0.4, abs=0.06)
    assert place.high == pytest.approx(0.6, abs=0.06)
    assert place.score - place.frequency == pytest.approx(0.3, abs=0.07)
    below, above = shape_of(drawn("too extreme", 20_000, 0)).ranges
    assert below.score < below.frequency
    assert above.score > above.frequency
    assert below.high == above.low == pytest.approx(0.5, abs=0.05)


def test_shapes_know_weights():
    pairs = drawn("too timid", 3000, 0)
    doubled = Pairs(pairs.scores, pairs.outcomes, np.full(3000, 2.0))
    repeated = Pairs(np.repeat(pairs.scores, 2), np.repeat(pairs.outcomes, 2))
    assert shape_of(doubled) == shape_of(repeated)


@pytest.mark.parametrize(
    ("scores", "outcomes"),
    [
        ([0.5], [1]),
        ([0.0, 1.0], [1, 0]),
        ([0.0] * 9, [1] * 9),
        ([1.0] * 9 + [0.0] * 9, [0] * 18),
        ([0.3] * 50, [1] * 50),
    ],
)
def test_hard_cases_have_a_shape(scores, outcomes):
    found = shape_of(Pairs(np.array(scores, float), np.array(outcomes, float)))
    assert np.isfinite([part.score for part in found.ranges]).all()


@pytest.mark.parametrize(("said", "n"), [(rare, 150), (rare, 1500), (wide, 150), (wide, 1500)])
def test_calibrated_probabilities_are_let_be_at_the_stated_rate(said, n):
    refused, repeats = 0, 200
    for seed in range(repeats):
        rng = np.random.default_rng([seed, n])
        p = said(rng, n)
        pairs = Pairs(p, (rng.random(n) < p).astype(float))
        refused += sweep_test(pairs, "", 2, 99, rng).rejects(0.05)
    # 5 % of 200 are 10, with a standard deviation of 3.1
    assert refused <= 10 + 3 * 3.1


def test_events_in_words():
    words = {}
    for kind in KINDS:
        pairs = drawn(kind, 5000, 0)
        found = calibrant.measure(pairs.outcomes.astype(int), pairs.scores, resamples=99)
        assert found.shape == KINDS[kind][2]
        words[kind] = found.verdict
    assert "probabilities are too high (the mean probability is" in words["too high"]
    assert "probabilities are too low" in words["too low"]
    assert "too extreme (over-confident)" in words["too extreme"]
    assert "too timid (under-confident)" in words["too timid"]
    assert "wrong in places (0.399 to 0.603: said 0.50" in words["a dent"]
    assert not any("accuracy" in text or "class" in text for text in words.values())


def test_classes_in_words(rng):
    z = 1.5 * rng.normal(size=(4000, 4))
    y = (z - np.log(-np.log(rng.random(z.shape)))).argmax(axis=1)
    for scale, words in ((2.0, "over-confident (mean confidence"), (0.5, "under-confident (mean confidence")):
        p = np.exp(scale * z) / np.exp(scale * z).sum(axis=1, keepdims=True)
        assert words in calibrant.measure(y, p, resamples=99).verdict


def test_what_is_wrong_everywhere_is_not_wrong_in_places():
    """Rare events that come more often than was said: X² of few events is large, but no range stands out."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = expit(rng.normal(-3.6, 1.2, 2500))
        y = (rng.random(2500) < expit(logit(p) + 0.4)).astype(float)
        found = shape_of(Pairs(p, y))
        assert found.kind != "in_places" or all(part.rows < 0.9 * 2500 for part in found.ranges)


@pytest.mark.parametrize(("share", "kind"), [(0.89, "in_places"), (0.91, "other"), (1.0, "other")])
def test_one_range_of_nearly_all_rows_is_no_place(monkeypatch, share, kind):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 1000)
    pairs = Pairs(p, (rng.random(1000) < p**2).astype(float))
    one = shape.Range(0.1, 0.9, share * 1000, 0.5, 0.4)
    monkeypatch.setattr(shape, "_places", lambda groups: (one,))
    monkeypatch.setattr(shape, "_left", lambda groups, line: np.inf)
    found = shape.shape_of(pairs)
    assert (found.kind == "in_places") == (kind == "in_places")
    monkeypatch.setattr(shape, "_places", lambda groups: (one, one))
    assert shape.shape_of(pairs).kind == "in_places"
