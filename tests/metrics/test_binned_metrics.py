"""The binned estimator against paper 003's code, another library and hand-made cases."""

import json

import numpy as np
import pytest

from calibrant.cells.edges import bin_index, equal_mass, equal_width, make_edges
from calibrant.cells.pairs import Pairs
from calibrant.metrics import (
    brier,
    brier_decomposition,
    calibration_error,
    calibration_test,
    ece,
    measure,
    nll,
    nll_decomposition,
    reliability_curve,
)
from calibrant.metrics.estimators.calibration_error import ESTIMATORS
from calibrant.simulation import fit_scenario

BINARY = ["binary_beta_n200", "binary_beta_n1000", "binary_beta_n5000"] + [
    f"binary_unif_n{n}" for n in (200, 1000, 5000)
]


def load_binary(shared_data, name):
    data = np.load(shared_data / "oracle" / f"{name}.npz")
    keys = list(data)
    scores = next(data[k] for k in keys if data[k].dtype.kind == "f")
    outcomes = next(data[k] for k in keys if data[k].dtype.kind != "f")
    return outcomes, scores


def rank_arithmetic_is_exact(n, bins):
    i = np.arange(n)
    return (np.floor(i / n * bins) == i * bins // n).all()


@pytest.mark.parametrize("name", BINARY)
def test_reference_values(shared_data, name):
    reference = json.loads((shared_data / "oracle/ece_sweep.json").read_text())[name]
    y, p = load_binary(shared_data, name)
    tied = len(np.unique(p)) < len(p)
    for edges, short in (("equal_width", "ew"), ("equal_mass", "em")):
        for bins in (10, 15, 100):
            for norm in (1, 2):
                if edges == "equal_mass" and (tied or not rank_arithmetic_is_exact(len(p), bins)):
                    continue  # their sort splits ties by row order, and ⌊i/n·b⌋ rounds some ranks into the bin below
                value = calibration_error(y, p, edges=edges, bins=bins, norm=norm)
                assert value == pytest.approx(reference[f"{short}_ece_bin_b{bins}_l{norm}"], abs=1e-9)


def test_table_4_of_paper_003(shared_data):
    data = np.load(shared_data / "top1_guo_models.npz")
    for model, percent in {"resnet110_c10": 4.75, "resnet110_c100": 18.48, "densenet40_c10": 5.50}.items():
        assert 100 * ece(data[model + "_correct"], data[model + "_confidence"]) == pytest.approx(percent, abs=0.006)


@pytest.mark.parametrize("bins", [1, 2, 3, 7, 10, 15, 100])
def test_every_edge_belongs_to_the_bin_above_it(bins):
    edges = equal_width(bins)
    assert bin_index(edges, edges).tolist() == [*range(bins), bins - 1]
    assert bin_index(np.nextafter(edges[1:], 0), edges).tolist() == list(range(bins))


def test_equal_mass_follows_ranks_and_keeps_ties(rng):
    scores = rng.random(203)
    place = bin_index(np.sort(scores), equal_mass(scores, 15))
    assert place.tolist() == [i * 15 // 203 for i in range(203)]
    tied = np.round(scores, 1)
    place = bin_index(tied, equal_mass(tied, 15))
    assert all(len(set(place[tied == value])) == 1 for value in tied)


def test_the_ends_are_in_bins():
    assert calibration_error(np.array([0, 1, 1]), np.array([0.0, 1.0, 1.0])) == 0
    for edges in ("equal_width", "equal_mass", "kmeans", "imax", "sturges", [0.5]):
        assert calibration_error([1, 1, 0], [0.0, 1.0, 1.0], edges=edges) > 0.3


def test_outcomes_may_be_all_true():
    assert ece([True, True], [0.75, 0.75]) == ece(np.array([True, True]), np.array([0.75, 0.75])) == 0.25
    assert ece(np.array([1.0, 1.0]), np.array([0.75, 0.75])) == 0.25
    assert ece(np.array([True, True]), np.array([[0.25, 0.75]] * 2)) == 0.25


@pytest.mark.parametrize("edges", ["equal_width", "equal_mass", "kmeans", "imax"])
def test_weights_count_rows(rng, edges):
    p, y, w = np.round(rng.random(60), 2), rng.integers(0, 2, 60), rng.integers(0, 3, 60)
    rows = np.repeat(np.arange(60), w)
    weighted = calibration_error(y, p, edges=edges, bins=7, sample_weight=w)
    assert weighted == pytest.approx(calibration_error(y[rows], p[rows], edges=edges, bins=7), abs=1e-12)


def test_sturges_counts():
    pairs = Pairs(np.linspace(0, 1, 1000), np.zeros(1000))
    assert len(make_edges("sturges", 15, pairs)) == 12


@pytest.mark.parametrize(
    ("y", "p", "words"),
    [
        ([0.2, 0.9], [0, 1], "swapped"),
        ([0.2, 0.9], [False, True], "swapped"),
        ([[0.2, 0.8], [0.9, 0.1]], [0, 1], "swapped"),
        ([0, 1], [0.2, 1.2], "probability"),
        ([0, 1], [0.2, np.nan], "NaN"),
        ([0, 1], [[0.2, 0.8], [0.9, 0.2]], "distribution"),
        ([0, 2], [[0.2, 0.8], [0.9, 0.1]], None),
        ([0, 5, 7], [0.1, 0.2, 0.3], "y_true"),
        ([0, 1, 1], [0.1, 0.2], "numbers of rows"),
    ],
)
def test_bad_input_is_refused(y, p, words):
    if words is None:
        y = [*y, 1]
        p = [*p, [0.5, 0.5]]
    with pytest.raises(ValueError, match=words or "y_true"):
        ece(np.array(y), np.array(p))


def test_proper_scores_by_hand(rng):
    p = rng.dirichlet(np.ones(4), 50)
    y = rng.integers(0, 4, 50)
    assert nll(y, p) == pytest.approx(-np.log(p[np.arange(50), y]).mean())
    assert brier(y, p) == pytest.approx(((p - np.eye(4)[y]) ** 2).sum(axis=1).mean())
    right = p.argmax(axis=1) == y
    assert brier(y, p, view="top_label") == pytest.approx(((p.max(axis=1) - right) ** 2).mean())


def test_masked_entries_are_refused(rng):
    p = rng.dirichlet(np.ones(3), 20)
    y = rng.integers(0, 3, 20)
    assert ece(y, np.ma.masked_array(p)) == ece(y, p)
    with pytest.raises(ValueError, match="y_prob has masked entries"):
        ece(y, np.ma.masked_array(p, mask=p > 0.9 * p.max()))
    with pytest.raises(ValueError, match="y_true has masked entries"):
        ece(np.ma.masked_array(y, mask=np.arange(20) == 3), p)


def test_views_that_are_not_taken_are_not_offered(rng):
    p, y = rng.dirichlet(np.ones(3), 20), rng.integers(0, 3, 20)
    for call in (calibration_test, reliability_curve, nll_decomposition):
        with pytest.raises(ValueError, match=r"allowed: 'top_label', 'pooled', or a class: 0, 1, 2"):
            call(y, p, view="class_wise")
    with pytest.raises(ValueError, match=r"allowed: 'top_label', 'pooled', 'multi_class', or"):
        brier_decomposition(y, p, view="class_wise")


@pytest.mark.parametrize("view", ["top_label", "class_wise", 0])
def test_entries_that_rounding_left_above_one_count_as_one(rng, view):
    p = np.tile([[1.0002, 0.0], [0.4, 0.6], [0.9, 0.1], [1.0, 0.0]], (10, 1))
    y, cut = np.tile([0, 1, 1, 0], 10), np.minimum(p, 1)
    for edges in ("equal_width", "equal_mass", "kmeans", "imax"):
        assert ece(y, p, view=view, edges=edges) == ece(y, cut, view=view, edges=edges)
    for estimator in ESTIMATORS:
        assert calibration_error(y, p, view=view, estimator=estimator) == pytest.approx(
            calibration_error(y, cut, view=view, estimator=estimator), abs=1e-12
        )


def test_real_outputs_above_one_are_measured(shared_data):
    data = np.load(shared_data / "imdb.npz")
    y, p = data["labels"], data["probs"]
    assert p.max() > 1
    assert calibration_test(y, p, resamples=19).pvalue == 0.05
    assert calibration_test(y, p, method="skce", resamples=19).pvalue <= 1
    assert measure(y, p, resamples=19).n == len(y)
    assert fit_scenario(y, p).event_rate() > 0.5
