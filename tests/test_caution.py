"""Warnings point at the user's own line, under the name they asked for."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.conftest import overconfident

from calibrant import CalibratedModel, CalibrationWarning, make
from calibrant.errors import InvalidInput, caution

Z, Y = overconfident(12, 3)


def _line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


@pytest.mark.parametrize("method", ["platt", "beta-s", "irova-ts"])
def test_a_fit_points_at_its_caller(method: str) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", CalibrationWarning)
        make(method).fit(Z, Y)
        here = _line() - 1
    own = [w for w in seen if issubclass(w.category, CalibrationWarning)]
    assert own
    for warning in own:
        assert (warning.filename, warning.lineno) == (__file__, here)
        assert str(warning.message).startswith(method)


def test_a_fit_inside_a_model_points_at_its_caller() -> None:
    x = np.random.default_rng(0).normal(size=(40, 2))
    y = (x[:, 0] + np.random.default_rng(1).normal(size=40) > 0).astype(int)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", CalibrationWarning)
        CalibratedModel(LogisticRegression(), "platt", cv=2).fit(x, y)
        here = _line() - 1
    own = [w for w in seen if issubclass(w.category, CalibrationWarning)]
    assert own
    assert {(w.filename, w.lineno) for w in own} == {(__file__, here)}
    assert all("platt" in str(w.message) for w in own)


def test_a_copy_is_called_as_the_original() -> None:
    assert make("platt").unfitted().called == "platt"
    assert type(make("ts"))().called == "TemperatureScaling"


def test_cautions_can_be_of_another_kind() -> None:
    with pytest.warns(DeprecationWarning, match="old"):
        caution("old", DeprecationWarning)


def test_messages_are_free_of_numpys_wrappers() -> None:
    error = InvalidInput("x", seen=f"{np.str_('ant')!r}, {np.float64(0.5)!r}", allowed=repr([np.int64(3), np.True_]))
    assert str(error) == "x; seen: 'ant', 0.5; allowed: [3, True]"
    with pytest.raises(InvalidInput, match=r"seen: 'z' in row 1; allowed: 'a', 'b'"):
        make("ts", classes=np.array(["a", "b"])).fit(Z[:2, :2], np.array(["a", "z"]))
    with pytest.raises(InvalidInput, match=r"seen: 1\.5 in row 0"):
        make("ts", inputs="probabilities").fit(np.array([1.5, 0.5]), [0, 1])
