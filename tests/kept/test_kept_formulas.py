"""The formula that every map is shipped as answers what the map does, to rows of all kinds: a twin in NumPy says so."""

import numpy as np
import pytest
from tests.kept.formula_twin import answers
from tests.kept.test_kept_maps import SETS, classes
from tests.kept.test_kept_operators import OTHERS, exact, lifted

import calibrant
from calibrant import registry
from calibrant.exports import describe
from calibrant.invariants import check_state

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
UNSHIPPED = {"kcal", "kcal-linear", "blend"}  # of embeddings, or of too many parts to be worth it here


def hard(k):
    """Rows far apart, tied, nearly tied and with classes that are ruled out."""
    rng = np.random.default_rng(k)
    special = np.zeros((7, k))
    special[1, 0] = -np.inf
    special[2, :-1] = -np.inf
    special[3] = np.arange(k) * 1e-9
    special[4, 1] = 1e4
    special[5, :2] = 50.0
    special[6, -1] = -30.0
    return np.concatenate([classes(40, k, 99)[0], rng.normal(size=(12, k)) * 8, special])


def check(fitted, rows, close=1e-11):
    check_state(fitted)  # what was fitted may be loaded
    found = answers(describe(fitted).formula, rows)
    np.testing.assert_allclose(found, fitted.predict_proba(rows), rtol=0, atol=close)


@pytest.mark.parametrize("of", ["four classes", "one event"])
@pytest.mark.parametrize("name", [name for name in registry.names() if name not in UNSHIPPED])
def test_formulas_of_maps(name, of):
    z, y, _ = SETS[of]
    rows = z[:20] if name == "kcal-logits" else np.concatenate([z[:20], hard(z.shape[1])])
    check(calibrant.make(name).fit(z, y), rows)


@pytest.mark.parametrize("name", OTHERS)
def test_formulas_of_operators(name):
    z, y, _ = SETS["four classes"]
    rows = z[:20] if name.startswith("kernel") else np.concatenate([z[:20], hard(4)])
    close = 2e-9 if name == "hoki, integrated" else 1e-11  # whose formula has a series for the normal distribution
    w = np.random.default_rng(0).integers(1, 4, len(y)) * 0.5
    check(lifted(OTHERS[name]).fit(z, y, sample_weight=w), rows, close)


@pytest.mark.parametrize("saturated", ["small", "exact"])
@pytest.mark.parametrize("name", ["ts", "irova", "platt", "hb-mass", "bts", "irova-ets"])
def test_formulas_of_probabilities(name, saturated):
    p, y = exact(12)
    p /= p.sum(axis=1, keepdims=True)
    check(calibrant.make(name).set_params(inputs="probabilities", saturated=saturated).fit(p, y), p)


@pytest.mark.parametrize("share", ["none", "all"])
@pytest.mark.parametrize("inputs", ["logits", "probabilities"])
def test_formulas_of_several_labels(share, inputs):
    z, _ = classes(160, 3, 6)
    y = (np.random.default_rng(7).random(z.shape) < 1 / (1 + np.exp(-z / 2))).astype(float)
    y[::7, 1] = np.nan
    rows = z if inputs == "logits" else 1 / (1 + np.exp(-z))
    check(calibrant.MultiLabel(calibrant.BetaCalibration(), share, inputs=inputs).fit(rows, y), rows)


@pytest.mark.parametrize("priors", [None, [0.6, 0.1, 0.2, 0.1]])
def test_formulas_of_other_frequencies(priors):
    z, y, _ = SETS["four classes"]
    fitted = calibrant.PriorShift(calibrant.make("ets")).fit(z, y)
    check(fitted if priors is None else fitted.adapt(priors=priors), np.concatenate([z[:20], hard(4)]))
