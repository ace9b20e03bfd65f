"""Every estimator against the papers' code, other libraries, and slow twins."""

import json

import numpy as np
import pytest

from calibrant.cells.edges import bin_index, equal_mass, equal_width
from calibrant.cells.pairs import Pairs
from calibrant.errors import InvalidInput
from calibrant.metrics import calibration_error, ece, ece_kde, ece_sweep, smece
from calibrant.metrics.estimators.calibration_error import ESTIMATORS
from calibrant.metrics.estimators.sweep import sweep_cells
from calibrant.metrics.estimators.triweight import triweight_sums

BINARY = [f"binary_{kind}_n{n}" for kind in ("beta", "unif") for n in (200, 1000, 5000)]
SYNTHETIC = [f"mnm_appE_case{c}_n{n}" for c in (1, 2) for n in (64, 256, 1024)]


def oracle(shared_data, file, name):
    reference = json.loads((shared_data / "oracle" / file).read_text())[name]
    data = np.load(shared_data / "oracle" / f"{name.replace('mnm_appE', 'mixnmatch_appendix_e')}.npz")
    scores = data["scores"] if "scores" in data else data["probs"][:, 1]
    return data["labels"], scores, reference


@pytest.mark.parametrize("name", BINARY + SYNTHETIC)
def test_sweep_and_label_binned_are_paper_003s(shared_data, name):
    y, p, reference = oracle(shared_data, "ece_sweep.json", name)
    cells = Pairs(p, y.astype(float)).cells
    for edges, short in (("equal_mass", "em"), ("equal_width", "ew")):
        for norm in (1, 2):
            swept = sweep_cells(cells, norm=norm, edges=edges)
            assert swept.bins == reference[f"{short}_ece_sweep_nbins"]
            assert swept.error == pytest.approx(reference[f"{short}_ece_sweep_l{norm}"], abs=1e-9)
            kind = {"em": "equal_examples", "ew": "equal_width"}[short]
            value = calibration_error(y, p, estimator="label_binned", edges=edges, norm=norm)
            assert value == pytest.approx(reference[f"label_binned_{kind}_b15_l{norm}"], abs=1e-9)


def test_sweep_reproduces_table_4(shared_data):
    data = np.load(shared_data / "top1_guo_models.npz")
    table = {"resnet110_c10": 4.75, "resnet110_c100": 18.48, "densenet40_c10": 5.49, "densenet40_c100": 21.16}
    for model, percent in table.items():
        assert 100 * ece_sweep(data[model + "_correct"], data[model + "_confidence"]) == pytest.approx(
            percent, abs=6e-3
        )


@pytest.mark.parametrize("edges", ["equal_mass", "equal_width"])
def test_sweep_is_its_slow_twin(rng, edges):
    for _ in range(20):
        n = int(rng.integers(2, 60))
        p, w = np.round(rng.random(n), 2), rng.integers(1, 4, n).astype(float)
        y = (rng.random(n) < p**2).astype(float)
        pairs = Pairs(p, y, w)
        best = 1
        for b in range(2, int(w.sum()) + 1):
            made = equal_mass(p, b, w) if edges == "equal_mass" else equal_width(b)
            place = bin_index(p, made)
            size = np.bincount(place, w)
            heights = np.bincount(place, w * y)[size > 0] / size[size > 0]
            if (np.diff(heights) < -1e-13).any():
                break
            best = b
        swept = sweep_cells(pairs.cells, edges=edges)
        assert swept.bins == best
        value = calibration_error(y, p, edges=edges, bins=best, sample_weight=w)
        assert swept.error == pytest.approx(value, abs=1e-12)


def test_sweep_goes_to_n_as_the_text_says():
    assert sweep_cells(Pairs(np.array([0.2, 0.8]), np.array([0.0, 1.0])).cells).bins == 2


@pytest.mark.parametrize("name", BINARY + SYNTHETIC)
def test_kde_is_paper_000s(shared_data, name):
    y, p, reference = oracle(shared_data, "mixnmatch_kde_binary.json", name)
    assert ece_kde(y, p) == pytest.approx(reference["ece_kde_order1"], abs=1e-6)
    assert ece_kde(y, p, norm=2) ** 2 == pytest.approx(reference["ece_kde_order2"], abs=1e-6)


def test_triweight_sums_are_sums(rng):
    points, places = np.sort(rng.normal(size=70)), rng.normal(size=50)
    weights = rng.random((2, 70))
    for h in (0.01, 0.3, 5.0):
        u = (places[:, None] - points) / h
        kernel = np.where(np.abs(u) < 1, 35 / 32 * (1 - u**2) ** 3, 0) / h
        np.testing.assert_allclose(triweight_sums(places, points, weights, h), weights @ kernel.T, atol=1e-11 / h)


def test_kde_in_logit_space_counts_certain_scores_exactly():
    assert calibration_error([0, 1, 1, 1], [0.0, 1.0, 1.0, 1.0], estimator="kde", space="logit") == 0
    assert calibration_error([0, 0, 1, 1], [0.0, 1.0, 1.0, 1.0], estimator="kde", space="logit") == pytest.approx(0.25)


@pytest.mark.parametrize("space", ["probability", "logit"])
def test_kde_finds_the_true_error(rng, space):
    p = rng.random(40_000)
    y = rng.random(40_000) < p**2
    assert ece_kde(y, p, space=space, bandwidth="paper") == pytest.approx(1 / 6, abs=0.005)
    assert ece_kde(y, p, space=space, norm=2) == pytest.approx(1 / np.sqrt(30), abs=0.006)


def test_debiased_is_kumars(shared_data):
    for name in BINARY + SYNTHETIC:
        y, p, reference = oracle(shared_data, "other_libraries.json", name)
        for bins in (10, 15):
            value = calibration_error(y, p, estimator="debiased", edges="equal_width", bins=bins)
            assert value == pytest.approx(reference[f"vc_debiased_l2_ew{bins}_seed0"], abs=1e-9)


def test_debiased_norm_1_is_the_mean_of_many_draws(rng):
    p = rng.random(500)
    y = (rng.random(500) < p).astype(float)
    place = bin_index(p, equal_width(10))
    size = np.bincount(place)
    score, height = np.bincount(place, p) / size, np.bincount(place, y) / size
    drawn = rng.normal(height, np.sqrt(height * (1 - height) / size), size=(200_000, 10))
    plain = size @ np.abs(score - height) / 500
    expected = 2 * plain - (np.abs(drawn - score) @ size / 500).mean()
    value = calibration_error(y, p, estimator="debiased", edges="equal_width", bins=10, norm=1)
    assert value == pytest.approx(max(0, expected), abs=2e-4)


def test_smooth_is_the_integral(rng):
    p, y = rng.beta(3, 0.2, 40), rng.integers(0, 2, 40)
    t = (np.arange(20_000) + 0.5) / 20_000
    for width in (0.02, 0.1):
        images = np.concatenate([p + shift for shift in (-2, 0, 2)] + [shift - p for shift in (0, 2)])
        residuals = np.tile(y - p, 5)
        curve = np.exp(-0.5 * ((t[:, None] - images) / width) ** 2) @ residuals / (width * np.sqrt(2 * np.pi) * 40)
        value = calibration_error(y, p, estimator="smooth", width=width)
        assert value == pytest.approx(np.abs(curve).mean(), abs=1e-5)
    assert calibration_error(y, p, estimator="smooth", width=smece(y, p)) == pytest.approx(smece(y, p), abs=1e-9)


def integral(y, p, width):
    """smECE_σ by the definition: the sum of kernels and their images at 4,000 places, none of it on a grid."""
    t = (np.arange(4000) + 0.5) / 4000
    scores, row = np.unique(p, return_inverse=True)
    curve = np.zeros(4000)
    for image in (scores, -scores, 2 - scores, scores - 2, scores + 2):
        curve += np.exp(-0.5 * ((t[:, None] - image) / width) ** 2) @ np.bincount(row, y - p)
    return np.abs(curve).mean() / (width * np.sqrt(2 * np.pi) * len(y))


@pytest.mark.parametrize("name", BINARY + SYNTHETIC)
def test_smooth_has_relplots_digits_on_its_grid_and_those_of_the_definition_on_ours(shared_data, name):
    """relplot's border cell counts once: with scores there, only ours is the integral."""
    y, p, reference = oracle(shared_data, "other_libraries.json", name)
    y, p = y.astype(float), p.astype(float)
    for width in (None, 0.01, 0.05, 0.1):
        wanted = reference["relplot_smECE" if width is None else f"relplot_smECE_sigma{width}"]
        assert smece(y, p, width=width, grid="relplot") == pytest.approx(wanted, abs=1e-14)
    assert smece(y, p, width=reference["relplot_smECE_width"], grid="relplot") == smece(y, p, grid="relplot")
    for bins in (10, 15):
        assert ece(y, p, bins=bins) == pytest.approx(reference[f"relplot_binnedECE_{bins}"], abs=1e-14)
    ours = smece(y, p)
    if len(y) <= 1024:
        assert integral(y, p, ours) == pytest.approx(ours, abs=2e-6)  # the fixed point of the definition
    apart = np.mean((p < 1e-3) | (p > 1 - 1e-3)) < 0.1
    assert abs(ours - reference["relplot_smECE"]) < 1e-3 or not apart


@pytest.mark.parametrize("grid", ["fine", "relplot"])
def test_the_grid_of_the_smooth_error_knows_weights_and_the_ends(rng, grid):
    p, w = np.r_[0.0, 1.0, rng.random(30)], rng.integers(1, 4, 32)
    y = (rng.random(32) < p).astype(int)
    twice = smece(np.repeat(y, w), np.repeat(p, w), grid=grid)
    assert smece(y, p, sample_weight=w, grid=grid) == pytest.approx(twice, abs=1e-12)
    with pytest.raises(InvalidInput, match="no such grid"):
        smece(y, p, grid="coarse")


def test_ks_and_exact_by_hand():
    y, p = [0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75]
    assert calibration_error(y, p, estimator="ks") == pytest.approx(0.125)
    assert calibration_error(y, p, estimator="exact") == pytest.approx(0.25)
    assert calibration_error([0, 1, 1, 1], p, estimator="exact", norm="max") == pytest.approx(0.25)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("view", ["top_label", "class_wise", "pooled", 2])
def test_rows_are_a_set_and_weights_are_counts(rng, estimator, view):
    p = np.round(rng.dirichlet(np.ones(3), 80), 1)
    p[:, 2] = np.maximum(0, 1 - p[:, 0] - p[:, 1])
    p /= p.sum(axis=1, keepdims=True)
    y, w = rng.integers(0, 3, 80), rng.integers(0, 3, 80)
    choose = {"view": view, "estimator": estimator}
    value = calibration_error(y, p, sample_weight=w, **choose)
    order = rng.permutation(80)
    assert calibration_error(y[order], p[order], sample_weight=w[order], **choose) == pytest.approx(value, abs=1e-9)
    rows = np.repeat(np.arange(80), w)
    assert calibration_error(y[rows], p[rows], **choose) == pytest.approx(value, abs=1e-9)
    assert 0 <= value <= 1


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_hard_cases_have_an_answer(estimator):
    for y, p in (([1], [0.3]), ([0], [0.0]), ([1, 1], [1.0, 1.0]), ([0, 1], [0.5, 0.5]), ([0] * 30, [1e-300] * 30)):
        assert 0 <= calibration_error(y, p, estimator=estimator) <= 1


def test_unknown_options_are_refused():
    for bad in (
        {"estimator": "sweep", "bins": 3},
        {"estimator": "no"},
        {"norm": 3},
        {"edges": "no"},
        {"bins": 0},
        {"view": 7},
        {"threshold": 0.1},
        {"estimator": "kde", "bandwidth": -1},
        {"estimator": "kde", "space": "no"},
        {"estimator": "smooth", "width": 0},
        {"estimator": "ks", "norm": 1},
        {"view": "class_wise", "threshold": "no"},
        {"edges": [0.5, 0.2]},
        {"edges": [0.5, 1.2]},
    ):
        with pytest.raises(ValueError, match="allowed"):
            calibration_error([0, 1], [0.2, 0.7], **bad)


def test_smooth_takes_any_width_or_refuses_it():
    p = np.linspace(0.02, 0.98, 49)
    y = (np.arange(49) % 3 == 0).astype(int)
    assert smece(y, p, width=1e300) == smece(y, p, width=1e3)
    for width in (1e-12, 1e-300, 5e-324):
        assert smece(y, p, width=width) == pytest.approx(0.5, abs=1e-12)  # nothing is smoothed: the mean gap
    assert np.isfinite(smece(y, p, width=1e-4, grid="relplot"))
    for width in (9e-5, 1e-12, 1e-300):
        with pytest.raises(InvalidInput, match="too small for relplot's grid"):
            smece(y, p, width=width, grid="relplot")
