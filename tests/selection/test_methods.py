"""What the words "default", "fast" and "all" stand for."""

import inspect

import pytest

from calibrant import AutoCalibrator, compare, make
from calibrant.errors import InvalidInput
from calibrant.selection.methods import default_methods, fast_methods, pick_methods


@pytest.mark.parametrize("n", [20, 1000, 50_000])
@pytest.mark.parametrize("k", [2, 3, 100, 5000])
def test_default_maps_exist_and_fast_ones_are_some_of_them(n: int, k: int) -> None:
    default = default_methods(n, k)
    assert len(set(default)) == len(default)
    assert {"identity", "ts", "ets", "iop", "gp", "irm", "irova", "beta", "svs", "vector"} <= set(default)
    for name in default:
        make(name)
    assert set(fast_methods(n, k)) < set(default)
    assert {"svs", "sms", "blend"}.isdisjoint(fast_methods(n, k))


def test_costly_maps_are_tried_where_rows_and_classes_are_few() -> None:
    assert {"sms", "blend"} <= set(default_methods(1000, 100))
    assert "blend" not in default_methods(5000, 100)
    assert "sms" in default_methods(5000, 100)
    assert {"sms", "blend"}.isdisjoint(default_methods(25_000, 5000))


def test_binary_problems_have_maps_of_their_own() -> None:
    own = set(default_methods(1000, 2)) - set(default_methods(1000, 3))
    assert own == {"platt", "bbq", "quadratic", "logit-spline", "isotonic-centred"}


def test_names_are_taken_as_they_are_and_the_identity_takes_part() -> None:
    assert list(pick_methods("ts", 10, 3, False)) == ["identity", "ts"]
    assert list(pick_methods(["ts > irova", "identity", "ts > irova"], 10, 3, False)) == ["identity", "ts > irova"]
    assert set(pick_methods("all", 10, 3, True)) - set(pick_methods("all", 10, 3, False)) == {"kcal", "kcal-linear"}
    with pytest.raises(InvalidInput, match="no map has this name"):
        pick_methods(["nothing"], 10, 3, False)


def test_everything_has_one_default() -> None:
    for function in (compare, AutoCalibrator):
        assert inspect.signature(function).parameters["methods"].default == "default"
