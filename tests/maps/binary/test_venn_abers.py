"""Venn–Abers: brute force, the reference answers, merging, the promise by simulation."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from calibrant import CalibrationWarning, OneVsRest, VennAbers, make


def fit(map_, *data, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return map_.fit(*data, **keywords)


def slowly(p, y, s, w=None, unit=1.0):
    """p₀ and p₁ at s by two isotonic fits."""
    w = np.ones(len(p)) if w is None else w
    found = []
    for outcome in (0, 1):
        iso = IsotonicRegression(y_min=0, y_max=1).fit(np.append(p, s), np.append(y, outcome), np.append(w, unit))
        found.append(iso.predict([s])[0])
    return found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_tables_are_what_two_fits_say(data):
    n = data.draw(st.integers(2, 14))
    p = np.array(data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))) / 10
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    w = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), dtype=float)
    if len(set(y)) < 2:
        y[0] = 1 - y[0]
    map_ = fit(VennAbers(inputs="probabilities"), p, y, sample_weight=w)
    for s in np.r_[p, 0.05, 0.45, 0.55, 0.95]:
        low, high = map_.predict_interval(np.array([s]))
        np.testing.assert_allclose([low[0], high[0]], slowly(p, y, s, w), atol=1e-9)


@pytest.mark.parametrize("name", ["imdb", "cat", "soccer", "extreme", "ties"])
def test_reference_answers(shared_data, name):
    folder = shared_data / "oracle-2"
    known, rows = np.load(folder / "bin_maps_outputs.npz"), np.load(folder / f"bin_{name}.npz")
    map_ = fit(make("venn-abers", inputs="probabilities"), rows["p_fit"], rows["y_fit"])
    low, high = map_.predict_interval(rows["p_eval"])
    np.testing.assert_allclose(np.c_[low, high], known[f"{name}_ivap_p0p1"], atol=1e-9)
    assert (low <= high).all()
    merged = map_.predict_proba(rows["p_eval"])[:, 1]
    np.testing.assert_allclose(merged, high / (1 - low + high), atol=1e-12)


def test_brier_merge_and_cross_form():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    brier = fit(VennAbers(loss="brier", inputs="probabilities"), p, y)
    low, high = brier.predict_interval(p)
    np.testing.assert_allclose(brier.predict_proba(p)[:, 1], high + (low**2 - high**2) / 2, atol=1e-12)
    cross = fit(VennAbers(folds=5, inputs="probabilities"), p, y)
    low, high = cross.predict_interval(p)
    np.testing.assert_allclose(cross.predict_proba(p)[:, 1], high / (1 - low + high), atol=1e-12)
    assert (high - low).mean() > (lambda pair: pair[1] - pair[0])(brier.predict_interval(p)).mean()
    assert (np.diff(cross.predict_proba(np.sort(p))[:, 1]) >= -1e-12).all()


def test_lift_has_intervals_of_each_class():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 3)) * 2
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    lift = fit(OneVsRest(VennAbers()), z, y)
    low, high = lift.predict_interval(z)
    marginals = lift.predict_marginals(z)
    assert low.shape == high.shape == z.shape
    assert ((low <= marginals) & (marginals <= high)).all()
    assert not hasattr(make("irova"), "predict_interval")


def test_the_outcomes_own_probability_is_calibrated():
    """p₁ where the event happens and p₀ where it does not average to the frequency (Vovk & Petej 2014, Theorem 1)."""
    rng = np.random.default_rng(1)
    total = []
    for _ in range(400):
        p = rng.random(41)
        y = (rng.random(41) < p**2).astype(int)
        if len(set(y[:40])) < 2:
            continue
        low, high = fit(VennAbers(inputs="probabilities"), p[:40], y[:40]).predict_interval(p[40:])
        total.append((high if y[40] else low)[0] - y[40])
    assert abs(np.mean(total)) < 3 * np.std(total) / np.sqrt(len(total))


def test_many_rows_agree_with_few_cells():
    """Above 2¹⁸ scores the tables are of fine cells: close to what all distinct scores say."""
    rng = np.random.default_rng(2)
    odds = rng.normal(size=300_000) * 2
    y = (rng.random(300_000) < 1 / (1 + np.exp(-0.7 * odds))).astype(int)
    z = np.stack([np.zeros_like(odds), odds], axis=1)
    many, few = fit(VennAbers(), z, y), fit(VennAbers(), z[:200_000], y[:200_000])
    assert np.abs(many.predict_proba(z[:500]) - few.predict_proba(z[:500])).max() < 0.03
    assert len(many.edges_) < 200_000
