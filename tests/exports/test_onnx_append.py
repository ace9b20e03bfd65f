"""A map behind a user's own ONNX model."""

import numpy as np
import pytest
from tests.exports.export_cases import quietly

from calibrant import CalibrantError, PlattScaling, export, make
from calibrant.arrays import softmax

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
W = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32) * 2


def network(*, softmax, opset=15, ir=8, kind=np.float32, width=3):
    h, floats = onnx.helper, onnx.TensorProto
    code = floats.FLOAT if kind is np.float32 else floats.DOUBLE
    nodes = [h.make_node("MatMul", ["x", "w"], ["logits"])]
    outputs = [h.make_tensor_value_info("logits", code, ["n", width])]
    if softmax:
        nodes.append(h.make_node("Softmax", ["logits"], ["scores"], axis=1))
        outputs = [h.make_tensor_value_info("scores", code, ["n", width])]
    x = h.make_tensor_value_info("x", code, ["n", 5])
    weights = onnx.numpy_helper.from_array(W[:, :width].astype(kind), "w")
    graph = h.make_graph(nodes, "net", [x], outputs, [weights])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=ir)


def run(model, x):
    data = model if isinstance(model, (bytes, str)) else model.SerializeToString()
    session = runtime.InferenceSession(data, providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: x})
    return dict(zip([o.name for o in session.get_outputs()], found, strict=True))


def rows(kind=np.float32):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 5)).astype(kind)
    z = x @ W.astype(kind)
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    return x, z, y


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_logits_stay_and_probabilities_come_beside_them(tmp_path, kind):
    x, z, y = rows(kind)
    calibrator = quietly(make("irova"), z, y)
    onnx.save(network(softmax=False, kind=kind), tmp_path / "net.onnx")
    calibrator.export(tmp_path / "both.onnx", model=tmp_path / "net.onnx")
    found = run(str(tmp_path / "both.onnx"), x)
    assert list(found) == ["logits", "probabilities"]
    np.testing.assert_allclose(found["probabilities"], calibrator.predict_proba(found["logits"]), rtol=0, atol=1e-4)


def test_a_map_of_logits_is_put_before_the_softmax_and_takes_its_name(tmp_path):
    x, z, y = rows()
    calibrator = quietly(make("ts"), z, y)
    export(calibrator, tmp_path / "m.onnx", model=network(softmax=True))
    found = run(str(tmp_path / "m.onnx"), x)
    assert list(found) == ["scores"]
    np.testing.assert_allclose(found["scores"], calibrator.predict_proba(z), rtol=0, atol=1e-5)


def classifier(words):
    """What skl2onnx writes for a logistic regression: labels, and probabilities in a ZipMap."""
    h, kinds = onnx.helper, onnx.TensorProto
    names = {"classlabels_strings": words} if words else {"classlabels_ints": [0, 1, 2]}
    zipped = {"classlabels_strings": words} if words else {"classlabels_int64s": [0, 1, 2]}
    linear = h.make_node(
        "LinearClassifier",
        ["x"],
        ["label", "raw"],
        domain="ai.onnx.ml",
        coefficients=W.T.ravel().tolist(),
        intercepts=[0.0] * 3,
        post_transform="SOFTMAX",
        multi_class=1,
        **names,
    )
    zipmap = h.make_node("ZipMap", ["raw"], ["probabilities"], domain="ai.onnx.ml", **zipped)
    label = kinds.STRING if words else kinds.INT64
    key = h.make_map_type_proto(label, h.make_tensor_type_proto(kinds.FLOAT, None))
    outputs = [
        h.make_tensor_value_info("label", label, ["n"]),
        h.make_value_info("probabilities", h.make_sequence_type_proto(key)),
    ]
    graph = h.make_graph([linear, zipmap], "lr", [h.make_tensor_value_info("x", kinds.FLOAT, ["n", 5])], outputs)
    opsets = [h.make_opsetid("", 17), h.make_opsetid("ai.onnx.ml", 3)]
    return h.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("words", [None, ["ant", "bee", "cat"]])
def test_a_classifier_keeps_its_labels_its_names_and_its_zipmap(words):
    from calibrant.exports import append_to_model

    x, z, y = rows()
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    classes = np.array(words) if words else np.arange(3)
    calibrator = quietly(make("irova", inputs="probabilities", classes=list(classes)), p, classes[y])
    found = run(append_to_model(calibrator, classifier(words)), x)
    assert list(found) == ["label", "probabilities"]
    answer = np.array([[row[c] for c in classes.tolist()] for row in found["probabilities"]])
    np.testing.assert_allclose(answer, calibrator.predict_proba(p), rtol=0, atol=2e-4)
    assert (np.asarray(found["label"]) == classes[answer.argmax(axis=1)]).all()


def test_ties_are_broken_by_the_scores():
    from calibrant.exports import append_to_model

    x, z, y = rows()
    p = softmax(z)
    calibrator = quietly(make("hb-mass-s", bins=3, inputs="probabilities"), p, y)
    answer = calibrator.predict_proba(p)
    tied = (answer == answer.max(axis=1, keepdims=True)).sum(axis=1) > 1
    assert tied.sum() > 5
    assert (answer.argmax(axis=1) != calibrator.predict(p)).any()
    assert (run(append_to_model(calibrator, classifier(None)), x)["label"] == calibrator.predict(p)).all()


def test_a_map_of_logits_does_not_follow_probabilities():
    from calibrant.exports import append_to_model

    _, z, y = rows()
    with pytest.raises(CalibrantError, match="the map takes logits"):
        append_to_model(quietly(make("ts"), z, y), classifier(None))


def test_one_logit():
    from calibrant.exports import append_to_model

    x, z, y = rows()
    calibrator = quietly(PlattScaling(), z[:, 0], (y == 0).astype(int))
    found = run(append_to_model(calibrator, network(softmax=False, width=1)), x)
    np.testing.assert_allclose(found["probabilities"], calibrator.predict_proba(z[:, 0]), rtol=0, atol=1e-6)


def test_it_asks_which_output():
    from calibrant.exports import append_to_model

    x, z, y = rows()
    model = network(softmax=False)
    model.graph.node.append(onnx.helper.make_node("Neg", ["logits"], ["minus"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("minus", onnx.TensorProto.FLOAT, ["n", 3]))
    calibrator = quietly(make("ts"), z, y)
    with pytest.raises(CalibrantError, match="2 outputs could be the scores"):
        append_to_model(calibrator, model)
    found = run(append_to_model(calibrator, model, output="logits"), x)
    np.testing.assert_allclose(found["probabilities"], calibrator.predict_proba(z), rtol=0, atol=1e-6)
    with pytest.raises(CalibrantError, match="no output named"):
        append_to_model(calibrator, model, output="nothing")


def test_bad_models(tmp_path):
    from calibrant.exports import append_to_model

    _, z, y = rows()
    calibrator = quietly(make("ts"), z, y)
    (tmp_path / "bad.onnx").write_bytes(b"nothing of the kind")
    with pytest.raises(CalibrantError, match="is no ONNX model"):
        append_to_model(calibrator, tmp_path / "bad.onnx")
    strange = network(softmax=False, opset=9)
    strange.graph.node[0].op_type = "Nothing"
    with pytest.raises(CalibrantError, match=r"opset is too old .* and onnx could not convert it"):
        append_to_model(calibrator, strange)


@pytest.mark.parametrize("softmax", [False, True])
def test_an_old_opset_is_raised(softmax):  # converters of scikit-learn's models take the lowest that will do
    from calibrant.exports import append_to_model

    x, z, y = rows()
    calibrator = quietly(make("ts"), z, y)
    found = run(append_to_model(calibrator, network(softmax=softmax, opset=9)), x)
    answer = found["scores" if softmax else "probabilities"]
    np.testing.assert_allclose(answer, calibrator.predict_proba(z), rtol=0, atol=1e-5)


def _spoilt(spoil):
    model = network(softmax=False)
    spoil(model)
    return model


@pytest.mark.parametrize(
    "spoil",
    [
        lambda m: m.graph.node[0].output.__setitem__(0, "elsewhere"),
        lambda m: m.graph.node[0].input.__setitem__(0, "logits"),
        lambda m: setattr(m.graph.node[0], "op_type", "MatSul"),
        lambda m: m.graph.initializer[0].dims.__setitem__(0, 10**9),
        lambda m: setattr(m.graph.initializer[0], "data_type", 111),
        lambda m: m.graph.ClearField("node"),
        lambda m: m.graph.ClearField("output"),
        lambda m: setattr(m.opset_import[0], "version", 10**6),
        lambda m: setattr(m, "ir_version", 99),
    ],
)
def test_damaged_models_are_refused_in_words(fitted_on_three, tmp_path, spoil):
    onnx.save(_spoilt(spoil), tmp_path / "bad.onnx")
    with pytest.raises(CalibrantError):
        export(fitted_on_three, tmp_path / "out.onnx", model=tmp_path / "bad.onnx")
    assert not (tmp_path / "out.onnx").exists()


def test_models_damaged_by_chance_are_refused_in_words(fitted_on_three, tmp_path):
    good, rng = network(softmax=True).SerializeToString(), np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(good)
        damaged[rng.integers(len(good))] = rng.integers(256)
        (tmp_path / "bad.onnx").write_bytes(damaged[: rng.integers(len(good)) if rng.random() < 0.2 else None])
        try:
            export(fitted_on_three, tmp_path / "out.onnx", model=tmp_path / "bad.onnx")
        except CalibrantError:
            continue


@pytest.fixture
def fitted_on_three():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(80, 3)) * 2
    return quietly(make("vector"), z, (z + rng.gumbel(size=z.shape)).argmax(axis=1))
