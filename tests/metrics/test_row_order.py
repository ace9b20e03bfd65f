"""What is drawn at random depends on the set of rows, and not on the order in which they came."""

import json

import numpy as np
import pytest

from calibrant import measure
from calibrant.metrics import bootstrap, calibration_test


def few_values(kind, n=150, seed=0):
    """Scores that many rows share, as of four neighbours: numbers of few digits."""
    g = np.random.default_rng(seed)
    p = np.array([[0.5, 0.5, 0], [0.5, 0.25, 0.25], [0.25, 0.75, 0], [0, 0, 1], [1, 0, 0]])[g.integers(0, 5, n)]
    y = (p.cumsum(axis=1) < g.random((n, 1))).sum(axis=1)
    return ((y == 1).astype(int), p[:, 1]) if kind == "event" else (y, p)


def in_two_orders(function, *arrays):
    order = np.random.default_rng(7).permutation(len(arrays[0]))
    return function(*arrays), function(*(array[order] for array in arrays))


def assert_close(one, other, place=""):
    if isinstance(one, dict):
        assert one.keys() == other.keys(), place
        for key in one:
            assert_close(one[key], other[key], f"{place}/{key}")
    elif isinstance(one, list):
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_close(a, b, f"{place}/{i}")
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12), place
    else:
        assert one == other, place


@pytest.mark.parametrize("kind", ["event", "classes"])
@pytest.mark.parametrize("beside", [None, "sample_weight", "clusters", "groups"])
def test_a_measurement(kind, beside):
    y, p = few_values(kind)
    g = np.random.default_rng(3)
    drawn = {"sample_weight": g.random(len(y)) * 2, "clusters": g.integers(0, 30, len(y))}
    more = drawn.get(beside, g.integers(0, 2, len(y)))

    def told(y, p, more):
        found = measure(y, p, resamples=200, **({} if beside is None else {beside: more}))
        return json.loads(found.to_json())

    assert_close(*in_two_orders(told, y, p, more))


@pytest.mark.parametrize("method", ["sweep", "ecce", "ks", "two_bin", "cox", "skce"])
def test_tests(method):
    one, other = in_two_orders(lambda y, p: calibration_test(y, p, method=method, resamples=99), *few_values("classes"))
    assert one.pvalue == pytest.approx(other.pvalue, rel=1e-9)


@pytest.mark.parametrize("name", ["ece", "smece", "cwece", "brier", "ece_crossfit"])
def test_the_bootstrap(name):
    y, p = few_values("classes")
    w = np.random.default_rng(5).random(len(y))
    one, other = in_two_orders(lambda y, p, w: bootstrap(name, y, p, sample_weight=w, resamples=50), y, p, w)
    assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-9)
