"""A map of its own for each class, on rows too few to judge it by, says so."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import overconfident

from calibrant import CalibrationWarning, Chain, Mixture, OneVsRest, PlattScaling, TemperatureScaling, make
from calibrant.arrays import softmax
from calibrant.fits.judge import label_losses
from calibrant.operators._class_groups import too_few
from calibrant.passes import Block, in_memory

CLASS_WISE = (
    *("platt", "beta", "spline", "irova", "irova-ts", "irova-ets"),
    *("hb-width", "hb-mass", "bbq", "scaling-binning", "imax-cw"),
)


def sample(rows_of, weights=None):
    """Rows of classes 0, 1, …, as many as given."""
    labels = np.repeat(np.arange(len(rows_of)), rows_of)
    scores = np.random.default_rng(0).normal(size=(len(labels), len(rows_of)))
    return in_memory(Block(scores, labels, weights, len(rows_of)))


def drawn(folder, name, rows, seed):
    """Some rows of real logits to fit on, and up to 5,000 others."""
    data = np.load(folder / f"{name}.npz")
    z, y = (np.concatenate([data[f"{part}_val"], data[f"{part}_test"]]) for part in ("logits", "labels"))
    order = np.random.default_rng(seed).permutation(len(y))
    fit, other = order[:rows], order[rows : rows + 5000]
    return z[fit].astype(np.float32), y[fit], z[other].astype(np.float32), y[other]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=3, max_size=12).filter(any))
def test_half_of_the_classes_must_have_a_row_for_each_fold(rows_of):
    told = too_few(sample(rows_of), np.arange(len(rows_of)))
    assert bool(told) == (2 * sum(n < 5 for n in rows_of) >= len(rows_of))
    assert not told or told.startswith(f"{sum(rows_of)} rows are few for {len(rows_of)} maps")


def test_classes_that_share_have_the_rows_of_all():
    thin = sample([2] * 12)
    assert "half of the classes have 2 or fewer" in too_few(thin, np.arange(12))
    assert "6 maps, half of the classes have 4 or fewer" in too_few(thin, np.arange(12) // 2)
    assert not too_few(thin, np.arange(12) // 3)
    assert not too_few(thin, np.zeros(12, dtype=np.int64))


def test_a_weight_of_three_is_three_rows():
    assert not too_few(sample([2] * 12, np.full(24, 3.0)), np.arange(12))
    assert too_few(sample([6] * 12, np.full(72, 0.5)), np.arange(12))


@pytest.mark.parametrize("name", CLASS_WISE)
def test_class_wise_maps_of_few_rows_warn_and_tell_what_to_do(name):
    z, y = overconfident(120, 40)
    with pytest.warns(CalibrationWarning, match=r'held-out.* rows are few for 40 maps.*share="all"') as caught:
        make(name, classes=range(40)).fit(z, y)
    assert len([w for w in caught if "held-out" in str(w.message)]) == 1


@pytest.mark.parametrize("name", CLASS_WISE)
def test_class_wise_maps_of_many_rows_do_not(name):
    z, y = overconfident(4000, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not make(name).fit(z, y).fit_report_.caveat


def test_chains_and_mixtures_pass_it_on():
    thin = sample([2] * 12)
    lift = OneVsRest(PlattScaling())
    for whole in (Chain([TemperatureScaling(), lift]), Chain([lift, TemperatureScaling()]), Mixture([lift, lift])):
        assert whole.fit_data(thin).caveat == lift.fit_data(thin).caveat != ""


def test_no_row_to_hold_out_is_told():
    z, y = overconfident(9, 3)
    for name in ("platt", "isotonic-s"):
        with pytest.warns(CalibrationWarning, match="too few rows for a held-out nll"):
            make(name, classes=range(3)).fit(z, y)


@pytest.mark.parametrize(
    ("name", "data", "rows", "draws", "words"),
    [
        ("imax-cw", "tinyimagenet_probe", 500, 4, "500 rows are few for 202 maps"),
        ("mi-binning", "cifar100_resnet50", 300, 30, "held-out nll"),
        ("imax", "cifar100_resnet50", 300, 30, "held-out nll"),
    ],
)
def test_a_gain_seen_by_luck_is_doubted(shared_data, name, data, rows, draws, words):
    """Of real draws, every one that makes other rows worse is told of, also where its own held-out loss falls."""
    lucky, more = 0, {"representatives": "mean_score"} if name == "imax-cw" else {}
    for seed in range(draws):
        z, y, others, truth = drawn(shared_data, data, rows, seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = make(name, classes=range(z.shape[1]), **more).fit(z, y)
        gain = label_losses(softmax(others), truth) - label_losses(fitted.predict_proba(others), truth)
        if gain.mean() >= 0:
            continue
        assert any(words in str(w.message) for w in caught), seed
        lucky += fitted.fit_report_.held_out_after < fitted.fit_report_.held_out_before
    assert lucky
