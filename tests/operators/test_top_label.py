"""TopLabel: the surrogate problem, the label and the ranking kept, valid distributions."""

import warnings

import numpy as np
import pytest
from scipy.special import softmax

from calibrant import CalibrantError, CalibrationWarning, Isotonic, PlattScaling, TopLabel, load, make
from calibrant.metrics import ece
from conftest import overconfident


def fit(map_, *data, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return map_.fit(*data, **keywords)


@pytest.mark.parametrize("binary", [Isotonic(), PlattScaling()])
def test_calibrates_the_top_label_and_keeps_the_order(binary):
    z, y = overconfident(4000, 6)
    map_ = fit(TopLabel(binary), z[:2000], y[:2000])
    p = map_.predict_proba(z[2000:])
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-9)
    assert (p.argmax(axis=1) == z[2000:].argmax(axis=1)).all()
    order = np.argsort(z[2000:], axis=1)
    assert (np.diff(np.take_along_axis(p, order, axis=1), axis=1) >= 0).all()
    assert ece(y[2000:], p) < 0.5 * ece(y[2000:], softmax(z[2000:], axis=1))


def test_is_the_binary_map_on_the_confidence():
    z, y = overconfident(1000, 4)
    s = softmax(z, axis=1).max(axis=1)
    right = (z.argmax(axis=1) == y).astype(int)
    alone = fit(PlattScaling(inputs="probabilities"), s, right).predict_proba(s)[:, 1]
    map_ = fit(TopLabel(PlattScaling()), z, y)
    np.testing.assert_allclose(map_.predict_confidence(z), alone, atol=1e-6)
    others = fit(TopLabel(PlattScaling(), keep_label=False), z, y).predict_proba(z)
    top = z.argmax(axis=1)
    np.testing.assert_allclose(others[np.arange(1000), top], alone, atol=1e-6)
    rest = np.delete(others[0], top[0]) / np.delete(softmax(z[0]), top[0])
    np.testing.assert_allclose(rest, rest[0])


def test_saturated_rows_and_saving(tmp_path):
    z, y = overconfident(500, 3)
    map_ = fit(TopLabel(make("quadratic").binary_map), z, y)
    p = map_.predict_proba(np.array([[0.0, -np.inf, -np.inf], [800.0, 0.0, 0.0], [1.0, 1.0, 1.0]]))
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    map_.save(tmp_path / "map")
    np.testing.assert_array_equal(load(tmp_path / "map").predict_proba(z), map_.predict_proba(z))
    with pytest.raises(CalibrantError, match="TopLabel: binary_map must act on one score"):
        TopLabel(make("ts")).fit(z, y)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_a_row_with_one_possible_class_is_shipped_as_certain(keep):
    """The formula of what is exported agrees with the map: all probability for the class that is left."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 3)) * 2
    y = np.where(rng.random(200) < 0.6, z.argmax(axis=1), rng.integers(0, 3, 200))
    map_ = TopLabel(PlattScaling(), keep_label=keep, saturated="exact").fit(z, y)
    rows = np.array([[0.5, -np.inf, -np.inf], [1.0, 0.0, -np.inf]])
    torch = pytest.importorskip("torch")
    shipped = map_.to_torch()(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(shipped, map_.predict_proba(rows), atol=1e-7)
    np.testing.assert_allclose(shipped[0], [1.0, 0.0, 0.0], atol=1e-7)
