"""One map after the other."""

import numpy as np
import pytest
from sklearn.base import clone

from calibrant import CalibrationWarning, Chain, Identity, TemperatureScaling, Uniform, make
from calibrant.errors import InvalidInput
from calibrant.testing import check_calibrator


@pytest.mark.parametrize("name", ["ts > ts", "identity > ts", "ts > identity"])
def test_chains_keep_the_contract(name):
    check_calibrator(make(name))


def test_the_second_map_is_fitted_on_the_answer_of_the_first(problem):
    z, y = problem
    chain = Chain([TemperatureScaling(loss="brier"), TemperatureScaling()]).fit(z, y)
    first = TemperatureScaling(loss="brier").fit(z, y)
    second = TemperatureScaling(inputs="probabilities").fit(first.predict_proba(z), y)
    np.testing.assert_allclose(chain.predict_proba(z), second.predict_proba(first.predict_proba(z)), atol=1e-8)
    assert chain.parts_[0].temperature_ == first.temperature_
    assert chain.parts_[1].temperature_ == pytest.approx(second.temperature_, rel=1e-6)


def test_temperatures_multiply(problem):
    z, y = problem
    chain = make("ts > ts").fit(z, y)
    once = TemperatureScaling().fit(z, y)
    assert chain.parts_[1].temperature_ == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(chain.predict_proba(z), once.predict_proba(z), atol=1e-9)


def test_the_report_covers_all_parts(problem):
    z, y = problem
    report = make("ts > ts").fit(z, y).fit_report_
    parts = report.details["parts"]
    assert report.iterations == sum(part.iterations for part in parts)
    assert report.loss_before == parts[0].loss_before
    assert report.loss_after == parts[-1].loss_after


def test_what_stops_at_a_bound_is_named_by_its_part():
    z = np.eye(3)[np.arange(30) % 3] * 2.0
    with pytest.warns(CalibrationWarning):
        report = make("identity > ts").fit(z, np.arange(30) % 3).fit_report_
    assert report.at_bound == ("parts_[1].temperature_",)


def test_traits_are_those_of_the_weakest_part():
    assert Chain([TemperatureScaling(), Uniform()]).traits.preserves == "ranking"
    mixed = Chain([make("platt"), TemperatureScaling()]).traits
    assert mixed.preserves == make("platt").traits.preserves
    assert mixed.calibrates == TemperatureScaling().traits.calibrates


def test_parts_are_cloned_and_reachable_by_position(problem):
    part = TemperatureScaling()
    chain = Chain([part, Identity()])
    chain.fit(*problem)
    assert not hasattr(part, "temperature_")
    copy = clone(chain).set_params(parts__0__loss="brier", inputs="probabilities")
    assert copy.parts[0].loss == "brier"
    assert part.loss == "nll"
    assert chain.get_params()["parts__0__loss"] == "nll"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "at least one calibrator"),
        (None, "at least one calibrator"),
        ("ts", "at least one calibrator"),
        ([TemperatureScaling(), "ts"], r"parts\[1\] is not a calibrator"),
        ([TemperatureScaling(loss="l1")], "loss is not valid"),
    ],
)
def test_bad_parts_are_refused(problem, parts, message):
    with pytest.raises(InvalidInput, match=message):
        Chain(parts).fit(*problem)


@pytest.mark.parametrize("key", ["parts__0__colour", "parts__5__loss", "parts__first__loss"])
def test_parameters_that_are_not_there_are_refused(key):
    with pytest.raises(ValueError, match="parts"):
        Chain([TemperatureScaling()]).set_params(**{key: 1})
