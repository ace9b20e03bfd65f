"""What a map writes of itself as a formula answers as the map does, with parameters and rows that are not the usual."""

import numpy as np
import pytest
from scipy.special import erfc
from tests.kept.test_kept_maps import SETS
from tests.kept.test_kept_operators import OTHERS, lifted

from calibrant import KCal, StructuredScaling, make, registry
from calibrant.maps import hoki_formula

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")


def same(fitted, rows, atol=2e-7):
    answers = fitted.to_torch()(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(answers, fitted.predict_proba(rows), rtol=0, atol=atol)


@pytest.mark.parametrize("name", OTHERS)
def test_other_parameters_have_their_formula(name):
    z, y, w = SETS["weights"]
    same(lifted(OTHERS[name]).fit(z, y, sample_weight=w), np.concatenate([z[:20], 3 * z[:5], z[:5] / 9]))


@pytest.mark.parametrize("name", [name for name in registry.names() if "kcal" not in name and name != "blend"])
def test_rows_with_enormous_gaps_have_their_formula(name):
    z, y, _ = SETS["four classes"]
    z = z.copy()
    z[::40, 1] -= 400.0  # such a row's label is not always another
    same(make(name).fit(z, y), z[::20])


def test_the_series_of_hokis_normal_law_is_erfc():
    x = np.linspace(0, 5, 501)
    t = 1 / (1 + x / 2)
    series = t * np.exp(-x * x + np.polynomial.polynomial.polyval(t, hoki_formula._ERFC))
    np.testing.assert_allclose(series, erfc(x), rtol=1.3e-7)


def test_a_projection_with_a_second_layer_has_its_formula():
    """Few sets make the training choose one: it is given here. Rows on both sides of zero, where the layer bends."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = rng.normal(size=(60, 4)) + np.eye(3, 4)[y]
    fitted = KCal("lda", dim=2, bandwidth=0.8).fit(x, y)
    plain = fitted.predict_proba(x)
    fitted.projection_ = {**fitted.projection_, "mix": np.array([[0.5, -0.8], [0.3, 0.6]])}
    assert np.abs(fitted.predict_proba(x) - plain).max() > 0.01
    same(fitted, x)


@pytest.mark.parametrize("shape", ["matrix", "vector"])
def test_structured_scaling_has_its_formula(shape):
    """Its parts see how sure a row is as well: rows of all degrees of it, beyond those of the fit."""
    z, y, w = SETS["weights"]
    fitted = StructuredScaling(shape=shape).fit(3 * z + [0.5, 0.0, -1.0], y, sample_weight=w)
    same(fitted, np.concatenate([3 * z[:20], z[:5] / 9, 20 * z[:5]]), atol=2e-6)
