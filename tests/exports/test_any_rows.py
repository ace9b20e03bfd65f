"""Rows drawn by chance: every map, as ONNX and as torch, answers them as predict_proba does."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.exports.export_cases import ALL, UNIT, fitted, quietly, scores_of, stated, tolerance

from calibrant import make
from calibrant.arrays import softmax
from calibrant.exports import describe, onnx_model

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
torch = pytest.importorskip("torch")

LOGITS = st.one_of(
    st.floats(-60, 60, width=32),
    st.integers(-3, 3).map(float),  # ties
    st.just(-np.inf),
    st.sampled_from([1e4, -1e4, 1e-7, -0.0]),
)


@cache
def shipped(name, kind, inputs):
    calibrator = fitted(name, kind, inputs)
    model = onnx_model(describe(calibrator), dtype=kind).SerializeToString()
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    module = calibrator.to_torch()
    given_as = session.get_inputs()[0].name
    return lambda rows: session.run(None, {given_as: rows})[0], lambda rows: module(torch.from_numpy(rows)).numpy()


def kinds_of(name):
    return ("logits",) if name in ("kcal", "kcal-linear") else ("logits", "probabilities")


def as_inputs(z, inputs):
    """Logits, or the probabilities that they are; these have zeros, and what the fit saw is among them."""
    return z if inputs == "logits" else softmax(z)


def rows_for(name, kind):
    if name in ("kcal", "kcal-linear"):  # embeddings, of which none is infinite
        return arrays(kind, (5, 3), elements=st.floats(-300, 300, width=32))
    drawn = arrays(kind, (5, 4), elements=LOGITS).filter(lambda z: bool((z > -np.inf).any(axis=1).all()))
    seen = scores_of(name)[0].astype(kind)
    return st.one_of(drawn, st.integers(0, len(seen) - 5).map(lambda i: seen[i : i + 5]))


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize(("name", "inputs"), [(name, inputs) for name in ALL for inputs in kinds_of(name)])
def test_any_rows(name, inputs, kind):
    @settings(max_examples=20, deadline=None, derandomize=True, database=None)
    @given(rows_for(name, kind))
    def check(drawn):
        calibrator, rows = fitted(name, kind, inputs), as_inputs(drawn, inputs)
        wanted = calibrator.predict_proba(rows)
        for ship in shipped(name, kind, inputs):
            answer = ship(rows)
            np.testing.assert_allclose(answer, wanted, rtol=0, atol=tolerance(name, kind))
            if calibrator.traits.preserves_accuracy and name not in ("identity", "uniform"):
                assert (calibrator.classes_[answer.argmax(axis=1)] == calibrator.predict(rows)).all()

    check()


def test_the_page_states_every_map_once():
    assert sorted(stated()) == sorted(ALL)
    assert max(stated().values()) * UNIT <= 1e-6


@cache
def timid():
    """Probabilities that say little, as of boosted stumps: maps must be steep, and many rows are nearly equal."""
    rng = np.random.default_rng(3)
    place = rng.integers(0, 40, size=600)
    p = softmax(0.004 * rng.normal(size=(40, 5)))[place]
    y = (250.0 * np.log(p) + rng.gumbel(size=p.shape)).argmax(axis=1)
    return np.array([row[rng.permutation(5)] if i % 3 else row for i, row in enumerate(p)]), y


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("kcal")])
def test_steep_maps_and_rows_that_are_nearly_equal(name, kind):
    p, y = timid()
    calibrator = quietly(make(name, inputs="probabilities"), p.astype(kind), y)
    answer = calibrator.to_torch()(torch.from_numpy(p.astype(kind))).numpy()
    np.testing.assert_allclose(answer, calibrator.predict_proba(p.astype(kind)), rtol=0, atol=tolerance(name, kind))


@pytest.mark.parametrize("name", ["ets", "platt", "isotonic-s", "vector"])
@pytest.mark.parametrize("one_score", [False, True])
def test_what_rounding_left_outside_of_zero_to_one(name, one_score):
    p = np.linspace(0.02, 0.98, 300, dtype=np.float32)
    y = (np.random.default_rng(0).random(300) < p).astype(int)
    p[0], p[-1] = -1.2e-7, 1.0000001
    rows = p if one_score else np.stack([1 - p, p], axis=1)
    calibrator = quietly(make(name, inputs="probabilities"), rows, y)
    wanted = calibrator.predict_proba(rows)
    assert np.isfinite(wanted).all()
    model = onnx_model(describe(calibrator), dtype="float32").SerializeToString()
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    shipped_as = [session.run(None, {"scores": rows})[0], calibrator.to_torch()(torch.from_numpy(rows)).numpy()]
    for answer in shipped_as:
        np.testing.assert_allclose(answer, wanted, rtol=0, atol=2 * UNIT)
