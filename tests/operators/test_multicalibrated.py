"""Multicalibrated: overlapping groups, cells of probability, nothing where nothing is wrong, saving."""

import numpy as np
import pytest
from scipy.special import expit

import calibrant
from calibrant import CalibrantError, Multicalibrated, make

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrationWarning")


def overlapping(n=8000, seed=0, size=0.8):
    """Events whose log-odds are off in two overlapping groups, in one of them only where they are high."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=n) * 1.5 - 0.5
    table = np.stack([rng.integers(2, size=n), rng.integers(4, size=n)], axis=1)
    truth = odds + size * (table[:, 0] == 1) - 1.5 * size * ((table[:, 1] == 2) & (odds > 0))
    y = (rng.random(n) < expit(truth)).astype(int)
    return np.stack([np.zeros(n), odds], axis=1), y, table


def worst(p, y, table):
    """The largest deviation of any group from its expectation, in standard errors."""
    sizes = []
    for c in range(table.shape[1]):
        for value in np.unique(table[:, c]):
            own = table[:, c] == value
            for low, high in ((0.0, 0.5), (0.5, 1.01)):
                some = own & (p >= low) & (p < high)
                sizes.append(abs((y - p)[some].sum()) / np.sqrt((p * (1 - p))[some].sum()))
    return max(sizes)


def test_every_group_is_right_on_other_rows():
    z, y, table = overlapping(20_000)
    half = np.arange(len(y)) < 10_000
    map_ = Multicalibrated(make("platt")).fit(z[half], y[half], groups=table[half])
    p = map_.predict_proba(z[~half], groups=table[~half])[:, 1]
    common = make("platt").fit(z[half], y[half]).predict_proba(z[~half])[:, 1]
    assert worst(p, y[~half], table[~half]) < 0.5 * worst(common, y[~half], table[~half])
    losses = [-np.log(np.where(y[~half] == 1, q, 1 - q)).mean() for q in (common, p)]
    assert losses[1] < losses[0] - 0.01
    assert map_.fit_report_.held_out_after < map_.fit_report_.held_out_before


def test_nothing_is_moved_where_nothing_is_wrong():
    z, y, table = overlapping(size=0.0)
    map_ = Multicalibrated(make("platt")).fit(z, y, groups=table)
    assert len(map_.steps_) == 0
    np.testing.assert_allclose(map_.predict_proba(z, groups=table), make("platt").fit(z, y).predict_proba(z), atol=1e-9)


def test_several_classes_columns_of_words_and_values_not_seen():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(4000, 3)) * 1.5
    ward = np.array(["east", "west"])[rng.integers(2, size=4000)]
    y = (z + rng.gumbel(size=z.shape) + 1.2 * (ward == "east")[:, None] * [1, 0, -1]).argmax(axis=1)
    map_ = Multicalibrated(make("ts")).fit(z, y, groups=ward)
    p = map_.predict_proba(z, groups=ward)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    for k in range(3):
        east = ward == "east"
        assert p[east, k].mean() == pytest.approx((y[east] == k).mean(), abs=0.03)
    new = map_.predict_proba(z[:5], groups=["north"] * 5)
    assert np.isfinite(new).all()


def test_order_weights_and_files(tmp_path):
    z, y, table = overlapping(3000, 1)
    fitted = Multicalibrated(make("platt")).fit(z, y, groups=table)
    order = np.random.default_rng(0).permutation(len(y))
    again = Multicalibrated(make("platt")).fit(z[order], y[order], groups=table[order])
    np.testing.assert_allclose(again.steps_, fitted.steps_, rtol=1e-4)
    weights = 1 + np.arange(len(y)) % 3  # uneven: the ranges of probability hold equal weights, not equally many rows
    twice = np.repeat(np.arange(len(y)), weights)
    heavy = Multicalibrated(make("platt")).fit(z, y, weights, groups=table)
    copied = Multicalibrated(make("platt")).fit(z[twice], y[twice], groups=table[twice])
    np.testing.assert_allclose(heavy.ranges_, copied.ranges_)
    np.testing.assert_allclose(heavy.steps_, copied.steps_, rtol=1e-4)
    fitted.save(tmp_path / "m.calibrant")
    loaded = calibrant.load(tmp_path / "m.calibrant")
    np.testing.assert_array_equal(loaded.predict_proba(z, groups=table), fitted.predict_proba(z, groups=table))
    whole = fitted.predict_proba(z, groups=table)
    np.testing.assert_array_equal(fitted.predict_proba(z[7:9], groups=table[7:9]), whole[7:9])


def test_what_cannot_be_is_refused():
    z, y, table = overlapping(500)
    map_ = Multicalibrated(make("platt"))
    with pytest.raises(CalibrantError, match="groups of each row"):
        map_.fit(z, y)
    with pytest.raises(CalibrantError, match="a value a row"):
        map_.fit(z, y, groups=table[:10])
    map_.fit(z, y, groups=table)
    with pytest.raises(CalibrantError, match="columns they had"):
        map_.predict_proba(z, groups=table[:, 0])
    with pytest.raises(CalibrantError, match="level"):
        Multicalibrated(make("platt"), level=2.0).fit(z, y, groups=table)


def test_every_round_costs_the_held_out_loss_a_number():
    z, y, table = overlapping(3000)
    plain = make("ts").fit(z, y).fit_report_
    fitted = Multicalibrated(make("ts")).fit(z, y, groups=table)
    report = fitted.fit_report_
    gained = plain.loss_after - report.loss_after
    assert report.iterations - plain.iterations == len(fitted.steps_) > 0
    assert report.held_out_after == pytest.approx(plain.held_out_after - gained + len(fitted.steps_) / 3000)


def test_a_small_one_comes_back_from_its_file(tmp_path):
    z, y, table = overlapping(600, size=2.0)
    map_ = Multicalibrated(make("platt")).fit(z, y, groups=table)
    map_.save(tmp_path / "m.calibrant")
    again = calibrant.load(tmp_path / "m.calibrant")
    assert map_.columns_.min() < 1  # the first column, and all rows
    np.testing.assert_array_equal(again.predict_proba(z, groups=table), map_.predict_proba(z, groups=table))


def test_a_forged_number_of_columns_is_refused(tmp_path):
    """Found by a fuzzer: 2^63 - 1 columns and one more overflowed when it was asked."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=200)
    fitted = Multicalibrated(make("platt")).fit(z, (rng.random(200) < 0.5).astype(int), groups=np.arange(200) % 2)
    fitted.columns_ = np.full_like(fitted.columns_, np.iinfo(np.int64).max)
    fitted.save(tmp_path / "forged.calibrant")
    with pytest.raises(CalibrantError, match="columns_"):
        calibrant.load(tmp_path / "forged.calibrant")


def test_rows_of_one_probability_but_for_rounding_are_in_one_cell():
    """Of votes, weight two and the row twice had edges between sums that differ by a last digit."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        votes = rng.multinomial(15, [0.3, 0.2, 0.2, 0.2, 0.1], size=800)
        z, group = np.log((votes + 0.5) / 17.5), rng.integers(0, 4, 800)
        y = (1.5 * z + rng.gumbel(size=z.shape) + (group == 1)[:, None] * np.arange(5) / 4).argmax(axis=1)
        weights = rng.integers(0, 4, 800)
        twice = np.repeat(np.arange(800), weights)
        one = Multicalibrated(make("ts")).fit(z, y, weights.astype(float), groups=group)
        two = Multicalibrated(make("ts")).fit(z[twice], y[twice], groups=group[twice])
        assert len(one.steps_) == len(two.steps_) > 0
        gap = one.predict_proba(z, groups=group) - two.predict_proba(z, groups=group)
        assert np.abs(gap).max() < 1e-9
