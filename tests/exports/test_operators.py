"""Operators that no registered name makes: shipped like every map, or refused with a reason."""

import json
import warnings

import numpy as np
import pytest
from tests.exports.export_cases import K, hard_rows, problem, quietly
from tests.exports.test_json_text import answers, plain

import calibrant
from calibrant import CalibrantError, Chain, Isotonic, PlattScaling, TemperatureScaling, VennAbers
from calibrant.exports import describe, onnx_model

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
torch = pytest.importorskip("torch")


def shipped_answers(calibrator, rows):
    """What ONNX, torch and JavaScript answer."""
    kind = str(rows.dtype)
    session = runtime.InferenceSession(
        onnx_model(describe(calibrator), dtype=kind).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    yield session.run(None, {session.get_inputs()[0].name: rows})[0]
    yield calibrator.to_torch()(torch.from_numpy(rows)).numpy()
    (told,) = answers([{"map": json.loads(calibrator.to_json(dtype=kind)), "rows": plain(rows)}])
    assert told["check"] <= 1e-6
    yield np.array(told["rows"])


def top_label(keep):
    return quietly(calibrant.TopLabel(Isotonic(), keep_label=keep), *problem())


def prior_shift(priors):
    calibrator = quietly(calibrant.PriorShift(calibrant.make("ets")), *problem())
    return calibrator if priors is None else calibrator.adapt(priors=priors)


CASES = {
    "top label": lambda: top_label(True),
    "top label, any order": lambda: top_label(False),
    "top label of a chain": lambda: quietly(calibrant.TopLabel(Chain([PlattScaling(), Isotonic()])), *problem()),
    "prior shift": lambda: prior_shift(None),
    "prior shift, adapted": lambda: prior_shift([0.7, 0.1, 0.2, 0.0]),
    "prior shift of isotonic": lambda: quietly(calibrant.PriorShift(calibrant.make("irova")), *problem()),
    "mixture": lambda: quietly(calibrant.Mixture([TemperatureScaling(), calibrant.make("irova")]), *problem()),
}


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_operators_answer_as_predict_proba(name, kind):
    calibrator, rows = CASES[name](), hard_rows(name, kind)
    wanted = calibrator.predict_proba(rows)
    for answer in shipped_answers(calibrator, rows):
        np.testing.assert_allclose(answer, wanted, rtol=0, atol=1e-6 if kind == "float32" else 1e-11)
        if calibrator.traits.preserves_accuracy:
            assert (answer.argmax(axis=1) == calibrator.predict(rows)).all()


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("inputs", ["logits", "probabilities"])
@pytest.mark.parametrize(("binary_map", "share"), [(Isotonic(), "none"), (PlattScaling(), "all"), (VennAbers(), "all")])
def test_events_answer_as_predict_proba(binary_map, share, inputs, kind):
    z, _ = problem()
    rng = np.random.default_rng(5)
    outcomes = (rng.random(z.shape) < 1 / (1 + np.exp(-0.5 * z))).astype(float)
    outcomes[::7, 1] = np.nan
    rows = z.astype(kind)
    if inputs == "probabilities":
        rows = (1 / (1 + np.exp(-z))).astype(kind)
        rows[0] = [0.0, 1.0, 0.5, 0.25]
    else:
        rows[0] = [np.inf, -np.inf, 0.0, 1.0]
    calibrator = quietly(calibrant.MultiLabel(binary_map, share, inputs=inputs), rows, outcomes)
    for answer in shipped_answers(calibrator, rows[:80]):
        np.testing.assert_allclose(
            answer, calibrator.predict_proba(rows[:80]), rtol=0, atol=1e-6 if kind == "float32" else 1e-12
        )


def test_events_are_not_put_behind_a_model():
    z, _ = problem()
    calibrator = quietly(calibrant.MultiLabel(PlattScaling()), z, (z > 0).astype(float))
    with pytest.raises(CalibrantError, match="not put behind a model"):
        calibrator.export("never.onnx", model="net.onnx")


def test_groups_are_refused_with_a_reason(tmp_path):
    z, y = problem()
    calibrator = quietly_by_group(z, y)
    for target in ("to_json", "to_torch"):
        with pytest.raises(CalibrantError, match="depends on the group of a row"):
            getattr(calibrator, target)()
    with pytest.raises(CalibrantError, match="depends on the group of a row"):
        calibrator.export(tmp_path / "map.onnx")


def quietly_by_group(z, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calibrant.ByGroup(TemperatureScaling()).fit(z, y, groups=np.arange(len(y)) % K)
