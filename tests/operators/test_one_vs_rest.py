"""The lift: log-odds, sharing, normalisation, two classes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax

import calibrant
from calibrant import (
    BetaCalibration,
    Binning,
    Chain,
    Isotonic,
    Mixture,
    OneVsRest,
    PlattScaling,
    TemperatureScaling,
    _core,
)
from calibrant.arrays import log_odds
from calibrant.errors import InvalidInput
from calibrant.operators.one_vs_rest import prior_groups


def slow_log_odds(z):
    z = z.astype(np.float64)
    columns = [z[:, k] - logsumexp(np.delete(z, k, axis=1), axis=1) for k in range(z.shape[1])]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3, 10, 700])
@pytest.mark.parametrize("scale", [0.01, 1.0, 8.0, 500.0])
def test_log_odds_equal_their_twin(rng, dtype, k, scale):
    z = (rng.normal(size=(40, k)) * scale).astype(dtype)
    z[:3] = 0.25
    tolerance = 2e-6 if dtype == np.float32 else 1e-13
    grid = 2.0**-37 if k > 2 else 0.0  # sums are multiples of 2⁻³⁶
    np.testing.assert_allclose(log_odds(z), slow_log_odds(z), rtol=tolerance, atol=tolerance * 2 + grid)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_order_of_other_classes_does_not_matter_to_the_last_bit(rng, dtype):
    votes = rng.integers(0, 9, size=(300, 8)) + 1.0
    z = np.log(votes / votes.sum(axis=1, keepdims=True)).astype(dtype)
    other = np.concatenate([z[:, :1], z[:, 1:][:, rng.permutation(7)]], axis=1)
    assert (log_odds(z)[:, 0] == log_odds(other)[:, 0]).all()


def test_log_odds_of_impossible_classes():
    z = np.array([[0.0, -np.inf, -np.inf], [1.0, -np.inf, 1.0], [0.0, -2000.0, -3000.0]])
    expected = [[np.inf, -np.inf, -np.inf], [0.0, -np.inf, 0.0], [2000.0, -2000.0, -3000.0]]
    np.testing.assert_allclose(log_odds(z), expected)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-60, 60, width=32), min_size=2, max_size=40),
    st.sampled_from([np.float32, np.float64]),
)
def test_log_odds_keep_the_order_of_a_row(row, dtype):
    z = np.array([row], dtype=dtype)
    ordered = log_odds(z)[0][np.argsort(z[0], kind="stable")]
    assert (np.diff(ordered) >= 0).all()


def test_normalised_rows(rng):
    z = rng.normal(size=(6, 4))
    q = rng.random((6, 4))
    q[0] = 0
    expected = np.where(
        q.sum(1, keepdims=True) > 0, q / np.maximum(q.sum(1, keepdims=True), 1e-300), softmax(z, axis=1)
    )
    _core.normalize_rows(z, False, 1, q)
    np.testing.assert_allclose(q, expected, rtol=1e-14)


def test_the_top_class_stays_strictly_on_top():
    z = np.array([[3.0, 2.0, 3.0, 0.0], [1.0, 0.0, 0.5, 0.2]], dtype=np.float32)
    q = np.array([[0.25, 0.25, 0.25, 0.25], [0.3, 0.3, 0.3, 0.1]], dtype=np.float32)
    _core.normalize_rows(z, True, 1, q)
    assert q[0, 0] == q[0, 2] > q[0, 1] == q[0, 3]
    assert q[1, 0] > q[1, 2] == q[1, 1]


def test_two_classes_need_no_lift(rng):
    z = rng.normal(size=(600, 2)) * 3
    y = (rng.random(600) < 1 / (1 + np.exp(-(z[:, 1] - z[:, 0]) / 2))).astype(int)
    alone, lifted = PlattScaling().fit(z, y), OneVsRest(PlattScaling()).fit(z, y)
    np.testing.assert_array_equal(alone.predict_proba(z), lifted.predict_proba(z))
    np.testing.assert_array_equal(lifted.predict_marginals(z), lifted.predict_proba(z))


def test_more_classes_ask_for_the_lift(problem):
    with pytest.raises(InvalidInput, match=r"OneVsRest\(PlattScaling\(\)\)"):
        PlattScaling().fit(*problem)


def test_sharing(problem):
    z, y = problem
    assert len(OneVsRest(PlattScaling()).fit(z, y).maps_) == 5
    assert len(OneVsRest(PlattScaling(), share="all").fit(z, y).maps_) == 1
    explicit = OneVsRest(PlattScaling(), share=[[0, 4], [1, 2, 3]]).fit(z, y)
    assert explicit.groups_.tolist() == [0, 1, 1, 1, 0]
    lists = OneVsRest(PlattScaling(), share=[[0], [1], [2], [3], [4]]).fit(z, y)
    np.testing.assert_array_equal(lists.predict_proba(z), OneVsRest(PlattScaling()).fit(z, y).predict_proba(z))


def test_groups_are_of_the_users_classes_wherever_the_lift_is_fitted(problem):
    z, y = problem
    words = np.array(["e", "a", "d", "b", "c"])  # in the order of the columns, in which no number is sorted
    groups = [["e", "c"], ["a", "d", "b"]]
    named = OneVsRest(PlattScaling(), share=groups)
    plain = OneVsRest(PlattScaling(), share=[[0, 4], [1, 2, 3]])
    wanted = plain.fit(z, y)
    report = calibrant.make("identity", classes=words)
    for map_ in (named, Chain([report, named]), Mixture([named], cv=3), calibrant.PriorShift(named)):
        found = map_.set_params(classes=words).fit(z, words[y])
        if map_ is named:
            assert found.fit_report_.held_out_after == wanted.fit_report_.held_out_after
            np.testing.assert_array_equal(found.predict_proba(z), wanted.predict_proba(z))
    row = calibrant.compare(z, words[y], methods=[named], classes=words).rows[-1]
    twin = calibrant.compare(z, y, methods=[plain]).rows[-1]
    assert row.metrics["nll"].value == twin.metrics["nll"].value
    auto = calibrant.AutoCalibrator([named], classes=words).fit(z, words[y])
    assert auto.best_ != "identity"


def test_groups_of_numbers_in_another_order_than_the_columns_are_those_that_are_judged(problem):
    z, y = problem
    numbers = np.array([4, 2, 0, 1, 3])
    renamed = OneVsRest(PlattScaling(), share=[[4, 3], [2, 0, 1]], classes=numbers).fit(z, numbers[y])
    plain = OneVsRest(PlattScaling(), share=[[0, 4], [1, 2, 3]]).fit(z, y)
    assert renamed.fit_report_.held_out_after == plain.fit_report_.held_out_after


@pytest.mark.parametrize(
    "share",
    [[[0, 1], [2, 3]], [[0, 1, 2, 3, 4, 4]], [[0, 1, 2, 3, 9]], "some", [[], [0, 1, 2, 3, 4]], 3, np.array(1)],
)
def test_wrong_groups_are_refused(problem, share):
    with pytest.raises(InvalidInput, match="share"):
        OneVsRest(PlattScaling(), share=share).fit(*problem)


def test_only_binary_maps_are_lifted(problem):
    with pytest.raises(InvalidInput, match="TemperatureScaling, a scaling map"):
        OneVsRest(TemperatureScaling()).fit(*problem)


def test_groups_by_prior():
    assert prior_groups(np.array([100.0, 100, 100])).tolist() == [0, 0, 0]
    assert prior_groups(np.array([1000.0, 100, 150, 0, 1900, 5000])).tolist() == [1, 0, 0, 0, 1, 2]
    assert prior_groups(np.array([500.0, 10, 60])).tolist() == [0, 0, 0]
    assert prior_groups(np.array([500.0, 10, 110])).tolist() == [1, 0, 0]


@pytest.mark.parametrize("normalize", ["sum", "softmax"])
def test_answers_are_distributions(problem, normalize):
    z, y = problem
    lifted = OneVsRest(PlattScaling(), normalize=normalize).fit(z, y)
    worst = np.array([[1e4, -1e4, 0, 0, 0], [-np.inf, 0, 0, 0, -np.inf], [0, 0, 0, 0, 0], [0, -np.inf] + [-np.inf] * 3])
    for scores in (z, worst, worst.astype(np.float32)):
        p = lifted.predict_proba(scores)
        assert p.dtype == scores.dtype
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)


@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrationWarning")  # after ts nothing is left to gain
def test_a_chain_ends_in_marginals(problem):
    z, y = problem
    chain = Chain([TemperatureScaling(), OneVsRest(PlattScaling())]).fit(z, y)
    tempered = z / chain.parts_[0].temperature_
    expected = OneVsRest(PlattScaling()).fit(tempered, y).predict_marginals(tempered)
    np.testing.assert_allclose(chain.predict_marginals(z), expected, rtol=1e-6)
    assert not hasattr(Chain([TemperatureScaling()]), "predict_marginals")


def _three_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    z = rng.normal(size=(120, 3))
    z[np.arange(120), y] += 2
    return z, y


@pytest.mark.parametrize(
    "nested",
    [
        Chain([PlattScaling(), Isotonic()]),
        Mixture([PlattScaling(), Isotonic()]),
        Mixture([Chain([BetaCalibration(), Isotonic()]), Binning("imax")]),
    ],
)
@pytest.mark.parametrize("share", ["none", "all"])
@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_chains_and_mixtures_of_binary_maps_are_lifted(nested, share, tmp_path):
    z, y = _three_classes()
    map_ = OneVsRest(nested, share=share).fit(z, y)
    p = map_.predict_proba(z)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    scores = log_odds(z)
    rows = np.stack([np.zeros(120), scores[:, 1]], axis=1)
    own = nested.unfitted().fit(rows, (y == 1).astype(int)) if share == "none" else None
    if own is not None:
        np.testing.assert_allclose(map_.predict_marginals(z)[:, 1], own.predict_proba(rows)[:, 1], atol=1e-9)
    map_.save(tmp_path / "map")
    np.testing.assert_array_equal(calibrant.load(tmp_path / "map").predict_proba(z), p)


@pytest.mark.parametrize(
    ("nested", "words"),
    [
        (OneVsRest(Isotonic()), "binary_map must .*OneVsRest, which is lifted to K classes already"),
        (TemperatureScaling(), "binary_map must .*TemperatureScaling, a scaling map"),
        (Chain([PlattScaling(), TemperatureScaling()]), r"binary_map.parts\[1\] must .*TemperatureScaling"),
        (Mixture([Chain([OneVsRest(Isotonic())]), PlattScaling()]), r"binary_map.parts\[0\].parts\[0\] must"),
        ("isotonic", "binary_map must .*str"),
    ],
)
def test_what_cannot_be_lifted_is_named(nested, words):
    with pytest.raises(InvalidInput, match=words):
        OneVsRest(nested).fit(*_three_classes())


@pytest.mark.parametrize("name", ["isotonic", "isotonic-centred", "hb-width", "spline"])
def test_of_two_classes_the_losses_on_the_fitted_rows_are_those_of_the_answers(name):
    generator = np.random.default_rng(0)
    p = generator.uniform(0.01, 0.99, 500)
    y = (generator.random(500) < p**2).astype(int)
    fitted = calibrant.make(name, inputs="probabilities").fit(p, y)
    answers = fitted.predict_proba(p)[np.arange(500), y]
    raw = np.where(y == 1, p, 1 - p)
    assert fitted.fit_report_.loss_before == pytest.approx(-np.log(raw).mean(), rel=1e-6)
    assert fitted.fit_report_.loss_after == pytest.approx(-np.log(np.maximum(answers, 1e-300)).mean(), rel=1e-6)
