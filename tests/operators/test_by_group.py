"""ByGroup: shrinkage, the limits, unseen groups, columns, few rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from calibrant import ByGroup, CalibrantError, CalibrationWarning, load, make


def fit(map_, *data, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return map_.fit(*data, **keywords)


def hospitals(sizes, spread, seed=0):
    rng = np.random.default_rng(seed)
    g = np.repeat(np.arange(len(sizes)), sizes)
    level = rng.normal(size=len(sizes)) * spread
    odds = rng.normal(size=len(g)) * 1.5 - 1
    y = (rng.random(len(g)) < expit(odds + level[g])).astype(int)
    return np.stack([np.zeros(len(g)), odds], axis=1), y, g, level


def loss(p, y):
    return -np.log(p[np.arange(len(y)), y]).mean()


def test_better_where_groups_differ_and_the_same_where_not():
    for spread, least in ((0.8, 0.01), (0.0, -0.0015)):
        z, y, g, _ = hospitals([400] * 12, spread, 1)
        half = np.arange(len(y)) % 2 == 0
        map_ = fit(ByGroup(make("platt")), z[half], y[half], groups=g[half])
        common = fit(make("platt"), z[half], y[half])
        gain = loss(common.predict_proba(z[~half]), y[~half]) - loss(map_.predict_proba(z[~half], g[~half]), y[~half])
        assert gain > least


def test_small_groups_shrink_more():
    z, y, g, level = hospitals([20] * 15 + [2000] * 15, 0.7, 2)
    map_ = fit(ByGroup(make("platt")), z, y, groups=g)
    found = map_.effects_[:, 1] - map_.effects_[:, 0]
    small, large = np.abs(found[:15]), np.abs(found[15:])
    assert small.mean() < large.mean()
    assert np.corrcoef(found[15:], level[15:])[0, 1] > 0.9
    assert (map_.effective_[:15] < map_.effective_[15:].min()).all()


def test_unseen_group_gets_the_common_map():
    z, y, g, _ = hospitals([300] * 4, 1.0)
    map_ = fit(ByGroup(make("platt")), z, y, groups=g)
    with pytest.warns(CalibrationWarning, match="the common map answers"):
        p = map_.predict_proba(z[:5], groups=[99] * 5)
    np.testing.assert_allclose(p, fit(make("platt"), z, y).predict_proba(z[:5]), atol=1e-9)


def test_one_sided_tiny_groups_have_finite_answers():
    z, y, g, _ = hospitals([3, 3, 500], 0.5)
    y[:3], y[3:6] = 0, 1
    p = fit(ByGroup(make("ts")), z, y, groups=g).predict_proba(z, groups=g)
    assert ((p > 0) & (p < 1)).all()


def test_column_of_a_frame_names_and_saving(tmp_path):
    z, y, g, _ = hospitals([200] * 3, 1.0)
    names = np.array(["a", "b", "c"])[g]
    frame = pd.DataFrame({"no": z[:, 0], "yes": z[:, 1], "ward": names})
    by_column = fit(ByGroup(make("platt"), "ward", classes=["no", "yes"]), frame, np.array(["no", "yes"])[y])
    by_argument = fit(ByGroup(make("platt")), z, y, groups=names)
    np.testing.assert_allclose(by_column.predict_proba(frame), by_argument.predict_proba(z, groups=names), atol=1e-12)
    by_argument.save(tmp_path / "map")
    again = load(tmp_path / "map")
    np.testing.assert_array_equal(again.predict_proba(z, groups=names), by_argument.predict_proba(z, groups=names))
    with pytest.raises(CalibrantError, match="needs the group of each row"):
        by_argument.predict_proba(z)
    with pytest.raises(CalibrantError, match="no column of groups"):
        by_column.predict_proba(z)


def test_many_classes():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3000, 4)) * 2
    g = np.arange(3000) % 5
    shift = rng.normal(size=(5, 4))
    y = (z + shift[g] + rng.gumbel(size=z.shape)).argmax(axis=1)
    map_ = fit(ByGroup(make("ts")), z[:2000], y[:2000], groups=g[:2000])
    common = fit(make("ts"), z[:2000], y[:2000])
    assert (
        loss(map_.predict_proba(z[2000:], g[2000:]), y[2000:]) < loss(common.predict_proba(z[2000:]), y[2000:]) - 0.05
    )


def test_a_name_is_no_map_and_the_way_to_one_is_told():
    with pytest.raises(CalibrantError, match=r"seen: 'platt'; allowed: a calibrator, such as make\(\"platt\"\)"):
        ByGroup("platt").fit([0.1, 0.4, -2.0, 1.0], [0, 1, 0, 1], groups=["a", "a", "b", "b"])  # pyright: ignore
