"""Lifts fitted by passes: blocks, order and weights change no answer, passes hold no rows, tables are made once."""

import pickle
import warnings
from copy import copy, deepcopy
from itertools import pairwise

import numpy as np
import pytest
from tests.conftest import overconfident

import calibrant
from calibrant import Binning, CalibrationWarning, Chain, Isotonic, Mixture, OneVsRest, PlattScaling, make
from calibrant.cells import counted as counted_cells
from calibrant.operators import one_vs_rest
from calibrant.passes import Data
from calibrant.scanning import scanned as scanned_data

PRESETS = [
    *("platt", "platt-s", "beta", "beta-s", "irova", "isotonic-s", "irm", "spline", "bbq", "mi-binning", "imax"),
    *("hb-width", "hb-width-s", "hb-mass", "hb-mass-s", "scaling-binning", "imax-cw", "imax-ts", "imax-platt"),
    *("imax-beta", "imax-isotonic"),
]
CELLS = [name for name in PRESETS if not name.startswith(("platt", "beta", "irova", "isotonic", "irm"))]
CUTS = [0, 1, 60, 60, 61, 1400, 2999, 3000]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CalibrationWarning)  # that nothing is gained here and there is said, and right
        yield


def scanned(z, y, w=None, cuts=CUTS):
    def batches():
        for a, b in pairwise(cuts):
            yield (z[a:b], y[a:b]) if w is None else (z[a:b], y[a:b], w[a:b])

    return calibrant.scan(batches)


def assert_alike(one, other, z, tolerance=1e-5):
    assert np.abs(one.predict_proba(z) - other.predict_proba(z)).max() < tolerance
    mine, its = one.fit_report_, other.fit_report_
    for name in ("loss_before", "loss_after", "held_out_before", "held_out_after", "held_out_error"):
        assert getattr(mine, name) == pytest.approx(getattr(its, name), rel=1e-6), name


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_and_order_change_no_answer(name, weighted):
    z, y = overconfident(3000, 10)
    rng = np.random.default_rng(1)
    y[y == 9] = 8
    y[::1000] = 9  # a class that most blocks are without
    w = rng.random(3000) if weighted else None
    order = rng.permutation(3000)
    made = [make(name) for _ in range(3)]
    made[0].fit(z, y, w)
    made[1].fit(scanned(z, y, w))
    made[2].fit(z[order], y[order], None if w is None else w[order])
    for other in made[1:]:
        assert_alike(made[0], other, z)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("weighted", [False, True])
def test_counted_cells_are_the_same_in_blocks(name, weighted, monkeypatch):
    monkeypatch.setattr(counted_cells, "_EXACT", 0)
    z, y = overconfident(3000, 10)
    w = np.random.default_rng(1).random(3000) if weighted else None
    assert_alike(make(name).fit(z, y, w), make(name).fit(scanned(z, y, w)), z)


@pytest.mark.parametrize("name", ["hb-mass", "imax", "spline", "irova", "platt"])
def test_large_fits_are_the_same_in_blocks_and_in_any_order(name):
    """Above two million scores a tenth is held out; above four, cells of classes are counted."""
    z, y = overconfident(22_000, 200)
    z = z.astype(np.float32)
    order = np.random.default_rng(0).permutation(len(z))
    cuts = [0, 5, 9000, 9000, 21_999, 22_000]
    arrays = make(name).fit(z, y)
    assert_alike(arrays, make(name).fit(scanned(z, y, cuts=cuts)), z[:500])
    assert_alike(arrays, make(name).fit(z[order], y[order]), z[:500])
    assert arrays.fit_report_.held_out_before == pytest.approx(arrays.fit_report_.loss_before)


@pytest.mark.parametrize("name", ["hb-mass", "imax-ts", "bbq", "irm", "beta"])
def test_large_fits_answer_as_small_ones_do(name, monkeypatch):
    z, y = overconfident(2000, 6)
    plain = make(name).fit(z, y)
    monkeypatch.setattr(one_vs_rest, "_LARGE", 0)
    large = make(name).fit(z, y)
    np.testing.assert_allclose(large.predict_proba(z), plain.predict_proba(z), atol=1e-9)
    assert large.fit_report_.held_out_after == pytest.approx(plain.fit_report_.held_out_after, rel=0.2)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_weights_of_any_size(name, scale):
    z, y = overconfident(200, 3)
    w = np.random.default_rng(0).integers(1, 4, 200) * scale
    p = make(name).fit(z, y, w).predict_proba(z)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    rows = np.repeat(np.arange(200), np.round(w / scale).astype(int))
    twice = make(name).fit(z[rows], y[rows], np.full(len(rows), scale)).predict_proba(z)
    np.testing.assert_allclose(p, twice, atol=1e-4)


@pytest.mark.parametrize("name", PRESETS)
def test_passes_hold_no_rows(name, monkeypatch):
    z, y = overconfident(3000, 10)
    plain, sizes = Data.reduce, []

    def reduce(self, function):
        sizes.append(len(pickle.dumps(function)))
        return plain(self, function)

    monkeypatch.setattr(Data, "reduce", reduce)
    monkeypatch.setattr(scanned_data, "HELD", 0)  # nothing stays in memory, so every pass could be sent somewhere
    made = make(name).fit(scanned(z, y))
    assert made.traits.sees in ("sums", "cells")
    assert max(sizes) < 64_000 + len(pickle.dumps(made))
    assert max(sizes) < z.nbytes / 2


@pytest.mark.parametrize("nested", [Chain([PlattScaling(), Isotonic()]), Mixture([PlattScaling(), Binning("imax")])])
@pytest.mark.parametrize("share", ["none", "all", [[0, 4], [1, 2, 3]]])
def test_nested_maps_are_the_same_in_blocks(nested, share):
    z, y = overconfident(600, 5)
    arrays, blocks = (OneVsRest(nested, share=share) for _ in range(2))
    assert_alike(arrays.fit(z, y), blocks.fit(scanned(z, y, cuts=[0, 1, 200, 200, 599, 600])), z)


def test_parameters_are_counted():
    z, y = overconfident(600, 5)
    assert make("platt").fit(z, y).n_parameters_ == 10
    assert make("beta-s").fit(z, y).n_parameters_ == 3
    assert make("spline").fit(z, y).n_parameters_ == 5 * 6
    for name in ("hb-mass", "bbq"):
        made = make(name).fit(z, y)
        assert made.n_parameters_ == sum(len(m.representatives_) for m in made.maps_)
    made = make("irova").fit(z, y)
    assert made.n_parameters_ == sum(len(m.values_) for m in made.maps_)


@pytest.mark.parametrize("name", ["platt", "irova", "irm", "spline", "hb-mass", "bbq"])
def test_tables_are_made_once_and_anew_after_a_fit(name):
    z, y = overconfident(600, 5)
    made = make(name).fit(z, y)
    p = made.predict_proba(z)
    assert made._stack(z.dtype)[0] is made._stack(z.dtype)[0]
    for other in (pickle.loads(pickle.dumps(made)), deepcopy(made)):
        assert "_stacks" not in vars(other)
        np.testing.assert_array_equal(other.predict_proba(z), p)
    single = made.predict_proba(z.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, p, atol=1e-3)
    shared = copy(made)
    made.fit(z[:300], y[:300])
    np.testing.assert_array_equal(made.predict_proba(z), make(name).fit(z[:300], y[:300]).predict_proba(z))
    np.testing.assert_array_equal(shared.predict_proba(z), p)


def test_long_tables_answer_as_short_ones_do():
    """More than 64 edges a class are searched for, fewer are counted: the same answers."""
    z, y = overconfident(3000, 4)
    for dtype in (np.float32, np.float64):
        scores = z.astype(dtype)
        made = OneVsRest(Binning("equal_mass", bins=90)).fit(scores, y)
        odds = calibrant.arrays.log_odds(scores)
        for k, own in enumerate(made.maps_):
            assert len(own.edges_) > 64
            place = np.searchsorted(own.edges_, odds[:, k].astype(np.float64), side="right")
            np.testing.assert_array_equal(
                made.predict_marginals(scores)[:, k], own.representatives_.astype(dtype)[place]
            )


@pytest.mark.parametrize("name", ["irova", "irm", "isotonic-s", "irova-ts"])
def test_scores_equal_but_for_rounding_are_one_in_passes_too(name, monkeypatch):
    """Neighbours and forests say few values; the log-odds of several classes round them apart."""
    rng = np.random.default_rng(0)
    p = (rng.multinomial(7, [0.4, 0.3, 0.2, 0.1], 1000) + 1) / 11
    y = np.array([rng.choice(4, p=row) for row in p])
    arrays = make(name, inputs="probabilities").fit(p, y)
    monkeypatch.setattr(scanned_data, "HELD", 0)
    passes = make(name, inputs="probabilities").fit(scanned(p, y, cuts=[0, 1, 137, 137, 999, 1000]))
    np.testing.assert_allclose(passes.predict_proba(p), arrays.predict_proba(p), atol=1e-6)
