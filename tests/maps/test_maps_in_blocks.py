"""Work that is done a block of rows at a time is done whole: limits of blocks change no map and no answer."""

import numpy as np
import pytest
from tests.conftest import overconfident

import calibrant
from calibrant import Hoki, KCal, arrays
from calibrant.cells import one_score as cells_of_one_score
from calibrant.fits import judge
from calibrant.maps import density
from calibrant.maps.scaling import _products, temperature
from calibrant.passes import Block, engines, in_memory, sample
from calibrant.validation import one_score, saturation

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
Z, Y = overconfident(90, 4)
W = np.random.default_rng(0).choice([0.5, 1.0, 3.0], 90)
NAMES = ("ts", "ets", "vector", "matrix", "sms", "irova", "hb-mass", "platt", "beta", "isotonic-centred", "irova-ets")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(arrays.row_blocks, "__defaults__", (7 * 4,))  # seven rows, of ninety: one is left over
    monkeypatch.setattr(_products, "_SCORES", 11 * 4)
    monkeypatch.setattr(temperature, "_GRID_SCORES", 40)
    monkeypatch.setattr(saturation, "_ROWS", 13)
    monkeypatch.setattr(density, "_TILE_ROWS", 7)
    monkeypatch.setattr(density, "_TILE_COLUMNS", 8)
    monkeypatch.setattr(sample, "_HASHED", 4 * 8)
    monkeypatch.setattr(engines, "_HELD", 8 * 11 * Z[:1].nbytes)


def answers(name, z):
    fitted = calibrant.make(name).fit(z, Y, sample_weight=W)
    report = fitted.fit_report_
    return fitted.predict_proba(z), np.array([report.loss_before, report.loss_after, report.held_out_after])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_maps(name, dtype, request):
    z = Z.astype(dtype)
    whole = answers(name, z)
    request.getfixturevalue("small_blocks")
    for found, wanted in zip(answers(name, z), whole, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


def test_densities_and_perturbations(request):
    def told():
        kernel = KCal("identity", bandwidth=0.8).fit(Z, Y, sample_weight=W)
        noise = Hoki(("gaussian", 0.0, 1.0), transformations=3, random_state=0).fit(Z, Y)
        return np.r_[kernel.predict_proba(Z).ravel(), noise.predict_proba(Z).ravel()]

    whole = told()
    request.getfixturevalue("small_blocks")
    np.testing.assert_allclose(told(), whole, rtol=1e-9, atol=1e-12)


def test_parts(request):
    """The least logarithm, the keys that tell rows apart, expected errors, and slices of views."""
    block = Block(Z, Y, W, 4)
    keys = sample.counted_keys(block)

    def told():
        betas = np.geomspace(0.1, 10, 5)
        held = in_memory(block).without(0, 5)
        return (
            saturation.smallest_log(Z),
            sample.exact_keys(keys, Z).tolist(),
            temperature._expected_errors(block, betas),
            np.sort(held.reduce(lambda some: np.array([some.weight_array.sum(), some.logits.sum()]))),
        )

    whole = told()
    request.getfixturevalue("small_blocks")
    found = told()
    assert found[0] == whole[0]
    assert found[1] == whole[1]
    for one, other in zip(found[2:], whole[2:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    p = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    assert whole[0] == pytest.approx(np.log(p.min()), rel=1e-5)
    assert whole[0] < np.log(p.min())
    top = [
        (1 - (np.exp(b * Z) / np.exp(b * Z).sum(axis=1, keepdims=True)).max(axis=1)) @ W
        for b in np.geomspace(0.1, 10, 5)
    ]
    np.testing.assert_allclose(whole[2], top)


def test_an_event_of_many_rows(monkeypatch):
    """Cells of one score, whose log-odds are made some rows at a time, without logits."""
    monkeypatch.setattr(one_score, "_MANY", 1000)
    monkeypatch.setattr(judge, "_ONE_FOLD", 1000)
    p = np.random.default_rng(5).random(20_001)
    y = (np.random.default_rng(6).random(20_001) < p**2).astype(int)
    glanced, plain, found = [], cells_of_one_score._glanced, []
    monkeypatch.setattr(cells_of_one_score, "_glanced", lambda rows: glanced.append(rows.n) or plain(rows))
    for rows in (1 << 15, 6667, 7000):
        monkeypatch.setattr(cells_of_one_score, "_ROWS", rows)
        fitted = calibrant.QuadraticScaling(inputs="probabilities").fit(p, y)
        found.append([fitted.coefficients_, fitted.predict_proba(p[-200:])[:, 1]])
    assert glanced == [20_001] * 3
    for one in found[1:]:
        for part, wanted in zip(one, found[0], strict=True):
            np.testing.assert_array_equal(part, wanted)
