"""ONNX: the same answers as predict_proba, by onnxruntime."""

import numpy as np
import pytest
from tests.exports.export_cases import ALL, CURVES, MASKED, fitted, hard_rows, masked, problem, quietly, tolerance

from calibrant import Binning, CalibrantError, Chain, Isotonic, OneVsRest, PlattScaling, TemperatureScaling, make
from calibrant.exports import describe, onnx_model

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def run(model, rows):
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, {session.get_inputs()[0].name: rows})
    return answer


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_every_map_answers_as_predict_proba(name, kind):
    calibrator, rows = fitted(name, kind), hard_rows(name, kind)
    description = describe(calibrator)
    model = onnx_model(description, dtype=kind)
    answer = run(model, rows)
    wanted = calibrator.predict_proba(rows)
    assert answer.dtype == wanted.dtype
    used = {name for node in model.graph.node for name in node.input}
    assert {tensor.name for tensor in model.graph.initializer} <= used  # onnxruntime warns of others
    np.testing.assert_allclose(answer, wanted, rtol=0, atol=tolerance(name, kind))
    if description.keeps_labels and name not in ("identity", "uniform"):
        assert (calibrator.classes_[answer.argmax(axis=1)] == calibrator.predict(rows)).all()


@pytest.mark.parametrize("name", ["ts", "platt", "irova", "imax", "sms", "bts"])
def test_probabilities_with_exact_zeros(name):
    calibrator = fitted(name, "float64", "probabilities")
    rows = np.array([[0.0, 0.5, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]])
    answer = run(onnx_model(describe(calibrator), dtype="float64"), rows)
    np.testing.assert_allclose(answer, calibrator.predict_proba(rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MASKED)
def test_masked_classes_stay_impossible(name):
    calibrator, z = masked(name)
    answer = run(onnx_model(describe(calibrator), dtype="float64"), z)
    assert (answer[np.isneginf(z)] == 0).all()
    np.testing.assert_allclose(answer, calibrator.predict_proba(z), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("temperature", [1 - 1e-6, 1 + 1e-14, 1 + 1e-6, 1 + 5e-5])
def test_masked_classes_of_a_temperature_next_to_one(temperature, kind):
    z, y = problem(kind)
    calibrator = quietly(make("ts", saturated="exact"), z, y)
    calibrator.temperature_ = temperature
    rows = np.where(np.arange(4) == 2, -np.inf, 1e4 * z[:60]).astype(kind)
    answer = run(onnx_model(describe(calibrator), dtype=kind), rows)
    np.testing.assert_allclose(answer, calibrator.predict_proba(rows), rtol=0, atol=tolerance("ts", kind))


@pytest.mark.parametrize("name", CURVES)
def test_curves_fitted_in_double_precision_and_asked_in_single(name):
    calibrator, rows = fitted(name, "float64"), problem("float32")[0]
    answer = run(onnx_model(describe(calibrator), dtype="float32"), rows)
    np.testing.assert_allclose(answer, calibrator.predict_proba(rows), rtol=0, atol=tolerance(name, "float32"))


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("edges", ["equal_mass", "equal_width", "imax"])
def test_a_score_on_an_edge_is_on_the_same_side(kind, edges):
    rng = np.random.default_rng(2)
    s = (rng.normal(size=400) * 3).astype(kind)
    y = (rng.random(400) < 1 / (1 + np.exp(-s))).astype(int)
    calibrator = quietly(Binning(edges, bins=12), s, y)
    at = calibrator.edges_.astype(kind)
    rows = np.concatenate([at, np.nextafter(at, kind_of(kind)(-np.inf)), np.nextafter(at, kind_of(kind)(np.inf)), s])
    answer = run(onnx_model(describe(calibrator), dtype=kind), rows)
    assert (answer == calibrator.predict_proba(rows)).all()
    single = run(onnx_model(describe(calibrator), dtype=kind, precision="single"), rows)
    if kind == "float32":
        np.testing.assert_allclose(single, answer, rtol=0, atol=6e-8)


def kind_of(name):
    return np.dtype(name).type


def test_interpolation_is_equal_at_its_knots():
    rng = np.random.default_rng(3)
    s = np.round(rng.normal(size=500), 1)
    y = (rng.random(500) < 1 / (1 + np.exp(-s))).astype(int)
    calibrator = quietly(Isotonic(), s, y)
    rows = calibrator.knots_
    answer = run(onnx_model(describe(calibrator), dtype="float64"), rows)
    assert (answer == calibrator.predict_proba(rows)).all()


def test_what_predict_proba_refuses_has_an_answer():
    calibrator = fitted("ets")
    rows = np.zeros((4, 4))
    rows[0, 1] = np.nan
    rows[1, 1] = np.inf
    rows[2] = -np.inf
    answer = run(onnx_model(describe(calibrator), dtype="float64"), rows)
    assert np.isnan(answer[0]).all()
    assert answer[1].tolist() == [0.0, 1.0, 0.0, 0.0]
    assert answer[2].tolist() == [0.25] * 4
    assert np.isfinite(answer[3]).all()


def test_no_rows_and_one_row():
    model = onnx_model(describe(fitted("irova")))
    assert run(model, np.zeros((0, 4), dtype=np.float32)).shape == (0, 4)
    assert run(model, np.zeros((1, 4), dtype=np.float32)).shape == (1, 4)


def test_one_score_is_what_fit_saw():
    rng = np.random.default_rng(4)
    s = rng.normal(size=200)
    y = (rng.random(200) < 1 / (1 + np.exp(-2 * s))).astype(int)
    calibrator = quietly(PlattScaling(), s, y)
    model = onnx_model(describe(calibrator), dtype="float64")
    assert [d.dim_param for d in model.graph.input[0].type.tensor_type.shape.dim] == ["rows"]
    np.testing.assert_allclose(run(model, s), calibrator.predict_proba(s), rtol=0, atol=1e-15)
    pair = onnx_model(describe(calibrator, one_score=False), dtype="float64")
    np.testing.assert_allclose(run(pair, np.stack([0 * s, s], axis=1)), calibrator.predict_proba(s), rtol=0, atol=1e-15)


def test_a_lift_that_shares_and_takes_softmax():
    calibrator = quietly(OneVsRest(PlattScaling(), share="prior", normalize="softmax"), *problem())
    rows = hard_rows("platt")
    answer = run(onnx_model(describe(calibrator), dtype="float64"), rows)
    np.testing.assert_allclose(answer, calibrator.predict_proba(rows), rtol=0, atol=1e-10)


def test_a_chain_in_a_lift():
    calibrator = quietly(OneVsRest(Chain([PlattScaling(), Isotonic()])), *problem())
    rows = hard_rows("platt")
    answer = run(onnx_model(describe(calibrator), dtype="float64"), rows)
    np.testing.assert_allclose(answer, calibrator.predict_proba(rows), rtol=0, atol=1e-9)


@pytest.mark.parametrize("opset", [13, 15, 18, 21])
def test_any_opset(opset):
    rows = hard_rows("irm", "float32")
    model = onnx_model(describe(fitted("irm", "float32")), opset=opset)
    assert model.opset_import[0].version == opset
    np.testing.assert_allclose(
        run(model, rows), fitted("irm", "float32").predict_proba(rows), rtol=0, atol=tolerance("irm", "float32")
    )


def test_steps_are_found_by_bisection():
    rng = np.random.default_rng(5)
    s = rng.normal(size=5000)
    y = (rng.random(5000) < 1 / (1 + np.exp(-s))).astype(int)
    calibrator = quietly(Binning(bins=1000), s, y)
    model = onnx_model(describe(calibrator))
    assert len(model.graph.node) < 120  # ten stages of six nodes, not a thousand comparisons


def test_refusals_are_sentences():
    with pytest.raises(CalibrantError, match="opset is too old"):
        onnx_model(describe(fitted("ts")), opset=9)
    with pytest.raises(CalibrantError, match="only a fitted map"):
        describe(object())
    with pytest.raises(CalibrantError, match="two classes"):
        describe(fitted("ts"), one_score=True)
    with pytest.raises(CalibrantError, match="no such precision"):
        onnx_model(describe(fitted("ts")), dtype="float16")


def test_a_map_without_a_formula_says_so():
    class Odd(TemperatureScaling):
        _identifier = "odd-for-exports"

        def _formula(self, z):
            return super(TemperatureScaling, self)._formula(z)

    z, y = problem()
    with pytest.raises(CalibrantError, match="Odd cannot be exported"):
        describe(quietly(Odd(), z, y))
