"""PriorShift: the formula, frequencies without labels, its certificate and intervals, the refusal."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from calibrant import CalibrantError, CalibrationWarning, PriorShift, TemperatureScaling, load, make
from calibrant.metrics import nll
from calibrant.operators._label_shift import find_frequencies


def fit(map_, *data, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return map_.fit(*data, **keywords)


def classes(n, priors, seed, k=3, spread=1.2):
    """Scores whose law given the class is fixed: Gaussians around corners, log-posteriors at equal priors, doubled."""
    rng = np.random.default_rng(seed)
    y = rng.choice(k, n, p=priors)
    x = np.eye(k)[y] * spread * 1.5 + rng.normal(size=(n, k))
    return 2 * spread * x, y


def test_given_priors_are_the_formula():
    z, y = classes(2000, [1 / 3] * 3, 0)
    map_ = fit(PriorShift(make("ts")), z, y)
    before = map_.predict_proba(z)
    new = np.array([0.7, 0.3, 0.0])
    after = map_.adapt(priors=new).predict_proba(z)
    expected = before * new / map_.source_priors_
    np.testing.assert_allclose(after, expected / expected.sum(axis=1, keepdims=True), atol=1e-9)
    np.testing.assert_allclose(before.mean(axis=0), map_.source_priors_, atol=1e-9)
    np.testing.assert_allclose(map_.source_priors_, np.bincount(y) / 2000, atol=1e-4)  # what free biases bring


def test_finds_frequencies_and_lowers_the_loss():
    z, y = classes(4000, [1 / 3] * 3, 0)
    map_ = fit(PriorShift(make("ts")), z, y)
    target, t = classes(4000, [0.8, 0.15, 0.05], 1)
    before = nll(t, map_.predict_proba(target))
    map_.adapt(target)
    seen = np.bincount(t) / 4000
    assert np.abs(map_.priors_ - seen).max() < 0.03
    assert ((map_.priors_interval_[:, 0] <= seen) & (seen <= map_.priors_interval_[:, 1])).sum() >= 2
    assert nll(t, map_.predict_proba(target)) < before - 0.1
    assert map_.certificate_ < 1e-6
    assert map_.shift_test_["p_value"] > 1e-3


@pytest.mark.parametrize("count", [0.0, 1.0, 50.0])
def test_calibration_rows_are_a_fixed_point(count):
    z, y = classes(3000, [0.5, 0.3, 0.2], 2)
    map_ = fit(PriorShift(make("ts"), pseudo_count=count), z, y)
    source = map_.source_priors_.copy()
    np.testing.assert_allclose(map_.adapt(z).priors_, source, atol=1e-5)


def test_maximum_of_the_likelihood_by_a_slow_twin():
    rng = np.random.default_rng(0)
    p = softmax(rng.normal(size=(300, 4)) * 2, axis=1)
    source = np.array([0.4, 0.3, 0.2, 0.1])
    q = np.full(4, 0.25)
    for _ in range(20_000):
        a = p * q / source
        q = (a / a.sum(axis=1, keepdims=True)).sum(axis=0) + 4 * source  # a row a class, at the frequencies of old
        q /= q.sum()
    found = find_frequencies(p, source, np.ones(300), 1.0)
    np.testing.assert_allclose(found.values, q, atol=1e-7)
    twice = find_frequencies(np.vstack([p, p]), source, np.ones(600), 2.0)
    weighed = find_frequencies(p, source, np.full(300, 2.0), 2.0)
    np.testing.assert_allclose(twice.values, weighed.values, atol=1e-8)


def test_refuses_what_is_no_label_shift():
    z, y = classes(4000, [1 / 3] * 3, 0)
    map_ = fit(PriorShift(make("ts")), z, y)
    noise = np.random.default_rng(5).normal(size=(4000, 3)) * 6
    with pytest.raises(CalibrantError, match="another way than by class frequencies"):
        map_.adapt(z + noise)
    map_.adapt(z + noise, check=False)
    refused = 0
    for seed in range(20):
        target, _ = classes(1500, np.random.default_rng(seed).dirichlet([1, 1, 1]), 100 + seed)
        try:
            map_.adapt(target)
        except CalibrantError:
            refused += 1
    assert refused <= 1


def test_reference_frequencies(shared_data):
    known = json.loads((shared_data / "oracle-2" / "label_shift.json").read_text())["cases"]["cifar10_resnet110"]
    rows = np.load(shared_data / "oracle-2" / "label_shift_rows.npz")
    real = np.load(shared_data / "cifar10_resnet110.npz")
    key = next(name for name in rows if name.startswith("cifar10_"))
    target = real["logits_test"][rows[key]]
    map_ = fit(PriorShift(make("identity"), pseudo_count=0.0), real["logits_val"], real["labels_val"])
    assert "cases" not in known
    map_.adapt(target)
    seen = np.bincount(real["labels_test"][rows[key]], minlength=10) / len(target)
    assert np.abs(map_.priors_ - seen).sum() < 0.05


def test_a_weight_is_so_many_rows_in_the_thirds_of_confidence_too():
    z, y = classes(500, [0.5, 0.3, 0.2], 2)
    weights = 1 + np.arange(500) % 3
    twice = np.repeat(np.arange(500), weights)
    heavy, copied = fit(PriorShift(make("ts")), z, y, weights), fit(PriorShift(make("ts")), z[twice], y[twice])
    np.testing.assert_allclose(heavy.edges_, copied.edges_, rtol=1e-6)
    np.testing.assert_allclose(heavy.table_, copied.table_)


def test_saving_and_refusals(tmp_path):
    z, y = classes(300, [1 / 3] * 3, 0)
    map_ = fit(PriorShift(make("ts")), z, y).adapt(priors=[0.2, 0.3, 0.5])
    map_.save(tmp_path / "map")
    np.testing.assert_array_equal(load(tmp_path / "map").predict_proba(z), map_.predict_proba(z))
    for bad in ([0.5, 0.5], [0.5, 0.6, 0.2], [-0.1, 0.6, 0.5]):
        with pytest.raises(CalibrantError, match="priors must be"):
            map_.adapt(priors=bad)
    with pytest.raises(CalibrantError, match="adapt takes"):
        map_.adapt()


def test_a_map_that_has_not_arrived_has_not_arrived_with_frequencies(monkeypatch):
    z, y = classes(300, [1 / 3] * 3, 0)
    assert fit(PriorShift(make("ts")), z, y).fit_report_.converged
    whole = TemperatureScaling.fit_data
    monkeypatch.setattr(
        TemperatureScaling, "fit_data", lambda self, data: replace(whole(self, data), converged=False), raising=True
    )
    assert not fit(PriorShift(make("ts")), z, y).fit_report_.converged


def test_scores_of_few_values_in_single_precision_are_no_shift():
    """A third of the confidences ends at a value that many rows have: rounding put all of them into the next."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        p, other = (np.stack([1 - votes, votes], axis=1) for votes in rng.integers(1, 10, (2, 1500)) / 10)
        y = (rng.random(1500) < p[:, 1]).astype(int)
        shift = PriorShift(make("ts"), inputs="probabilities").fit(p, y)
        tests = [shift.adapt(rows).shift_test_["p_value"] for rows in (other, other.astype(np.float32))]
        assert tests[1] == pytest.approx(tests[0], rel=1e-3)
