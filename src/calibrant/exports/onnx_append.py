"""A map at the end of a user's own ONNX model, whose inputs, labels and names stay."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CalibrantError, FileProblem, InvalidInput, import_extra
from .description import Description, describe
from .onnx_graph import onnx_model

_PREFIX = "calibrant/"
_LOWEST = 13  # opset in which a map can be written
_FLOATS = {1: "float32", 11: "float64", 10: "float16"}  # of TensorProto
_PASSED = ("Cast", "Identity", "Reshape", "Squeeze")  # what may stand between a softmax and an output
_ANSWERS = ("Softmax", "Sigmoid", "Normalizer", "LinearClassifier", "TreeEnsembleClassifier", "SVMClassifier")
_ANSWERS += ("TreeEnsembleRegressor",)


@dataclass(frozen=True, eq=False)
class _Place:
    """Where the map is put: the tensor it reads, the output that shows its answer, and what gives labels."""

    tensor: str
    output: str
    shown: str  # "same": the answer takes the output's place; "beside": it is one output more
    zipmap: Any


def append_to_model(
    calibrator: Any, model: str | os.PathLike[str] | Any, *, output: str | None = None, precision: str = "double"
) -> Any:
    """Return the user's model with the map behind its scores.

    The scores are the one output of floats with as many columns as the map has, or the logits before its softmax, where
    the map takes logits. An output of probabilities is replaced by calibrated ones under its own name; logits stay, and
    ``probabilities`` comes beside them. A ZipMap at the end stays. Labels are kept where the map keeps them, else
    they are the classes of the largest calibrated probability.

    Parameters
    ----------
    calibrator : Calibrator
    model : path or ModelProto
    output : str, optional
        The name of the output that holds the scores, where it is not plain.
    precision : {"double", "single"}
        See `onnx_model`.
    """
    onnx = import_extra("onnx", "onnx", "appending to an ONNX model")
    if not getattr(calibrator, "_sums_to_one", True):
        raise InvalidInput(
            "a map of several events is not put behind a model, whose labels are those of one class a row",
            hint="export it without model=, and give it the model's scores",
        )
    loaded = _loaded(onnx, model)
    try:
        return _appended(onnx, calibrator, loaded, output, precision)
    except CalibrantError:
        raise
    except Exception as error:  # whatever onnx thinks of a damaged model
        seen = f"{type(error).__name__}: {error}"[:300]
        raise FileProblem("the map cannot be put behind this model, as onnx refuses it", seen=seen) from error


def _appended(onnx: Any, calibrator: Any, model: Any, output: str | None, precision: str) -> Any:
    loaded, opset = _raised(onnx, model)
    graph = loaded.graph
    kinds = _tensor_kinds(onnx, loaded)
    place = _found(graph, kinds, calibrator, output)
    kind = kinds.get(place.tensor, (1, None))
    one = kind[1] == 1 or (calibrator.one_score_ and kind[1] is None)
    description = describe(calibrator, bool(one))
    dtype = "float64" if _FLOATS.get(kind[0]) == "float64" else "float32"
    ours = onnx_model(
        description, dtype=dtype, precision=precision, opset=opset, ir_version=loaded.ir_version, prefix=_PREFIX
    )
    answer = _put(onnx, graph, ours.graph, place, kind[0], len(description.classes))
    _relabel(onnx, graph, ours.graph, description, answer)
    for fact in ours.metadata_props:
        if fact.key not in {known.key for known in loaded.metadata_props}:
            loaded.metadata_props.append(fact)
    onnx.checker.check_model(loaded, full_check=True)
    return loaded


def _raised(onnx: Any, model: Any) -> tuple[Any, int]:
    """Return a model in an opset that a map can be written in, and which: converters take the lowest that will do."""
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    highest = onnx.defs.onnx_opset_version()
    if opset > highest:
        raise InvalidInput("onnx does not know the model's opset", seen=str(opset), allowed=f"{highest} or earlier")
    if opset >= _LOWEST:
        return model, opset
    if not opset:  # it has operators of other domains only
        model.opset_import.append(onnx.helper.make_opsetid("", _LOWEST))
        return model, _LOWEST
    try:
        return onnx.version_converter.convert_version(model, _LOWEST), _LOWEST
    except Exception as error:  # whatever the converter thinks of it
        raise InvalidInput(
            "the model's opset is too old for a map to be appended, and onnx could not convert it",
            seen=f"{opset}: {str(error)[:200]}",
            allowed=f"{_LOWEST} or later",
            hint="convert the model again with a target opset",
        ) from error


def _loaded(onnx: Any, model: Any) -> Any:
    if isinstance(model, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        return copy
    try:
        return onnx.load(os.fspath(model))
    except Exception as error:
        raise FileProblem(f"{model} is no ONNX model", seen=f"{type(error).__name__}: {error}") from error


def _tensor_kinds(onnx: Any, model: Any) -> dict[str, tuple[int, int | None]]:
    """Return element type and last dimension of every tensor that is known; 1 for tensors of rank 1."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    kinds: dict[str, tuple[int, int | None]] = {}
    for info in [*inferred.input, *inferred.value_info, *inferred.output]:
        if not info.type.HasField("tensor_type"):
            continue
        tensor = info.type.tensor_type
        dims = list(tensor.shape.dim) if tensor.HasField("shape") else []
        last = dims[-1].dim_value if dims and dims[-1].HasField("dim_value") else None
        kinds[info.name] = (tensor.elem_type, 1 if len(dims) == 1 else last)
    return kinds


def _found(graph: Any, kinds: dict[str, tuple[int, int | None]], calibrator: Any, output: str | None) -> _Place:
    makers = {name: node for node in graph.node for name in node.output}
    wanted = {calibrator.n_features_in_} | ({1} if calibrator.n_features_in_ == 2 else set())
    candidates = []
    for info in graph.output:
        maker = makers.get(info.name)
        zipped = maker is not None and maker.op_type == "ZipMap"
        kind = kinds.get(maker.input[0] if maker is not None and zipped else info.name, (1, None))
        fits = kind[0] in _FLOATS and (kind[1] is None or kind[1] in wanted)
        if (output is None and fits) or info.name == output:
            candidates.append((info.name, maker if zipped else None))
    names = [info.name for info in graph.output]
    if len(candidates) != 1:
        columns = calibrator.n_features_in_
        raise InvalidInput(
            f"the model has no output named {output!r}" if output else f"{len(candidates)} outputs could be the scores",
            seen=", ".join(names),
            allowed=f"one output of floats with {columns} columns",
            hint='name it: output="…", on the command line --scores-output …',
        )
    name, zipmap = candidates[0]
    tensor = zipmap.input[0] if zipmap is not None else name
    return _read_from(tensor, name, zipmap, makers, calibrator)


def _read_from(tensor: str, output: str, zipmap: Any, makers: dict[str, Any], calibrator: Any) -> _Place:
    """Return the tensor that the map takes: probabilities as they are shown, logits from before a softmax."""
    at = tensor
    while at in makers and makers[at].op_type in _PASSED:
        at = makers[at].input[0]
    maker = makers.get(at)
    probable = zipmap is not None or (maker is not None and maker.op_type in _ANSWERS)
    if calibrator.traits.needs == "embeddings":
        return _Place(tensor, output, "same" if probable else "beside", zipmap)
    if calibrator.inputs == "probabilities":  # whoever made them
        return _Place(tensor, output, "same", zipmap)
    if not probable:
        return _Place(tensor, output, "beside", None)
    if maker is not None and maker.op_type == "Softmax":
        return _Place(maker.input[0], output, "same", zipmap)
    raise InvalidInput(
        f"the map takes logits, and output {output!r} holds probabilities",
        seen=f"made by {maker.op_type if maker is not None else 'ZipMap'}",
        hint='fit the map with inputs="probabilities", or name an output of logits',
    )


def _put(onnx: Any, graph: Any, ours: Any, place: _Place, kind: int, classes: int) -> str:
    """Append our nodes, and return the name of the tensor of calibrated probabilities."""
    helper, shown = onnx.helper, place.output
    given, answer = ours.input[0].name, ours.output[0].name
    graph.initializer.extend(ours.initializer)
    source = place.tensor
    if place.zipmap is None and place.shown == "same":
        raw = place.output + "_raw"
        _rename(graph, place.output, raw)
        source = raw if source == place.output else source
    half = _FLOATS.get(kind) == "float16"
    first = helper.make_node("Cast" if half else "Identity", [source], [given], **({"to": 1} if half else {}))
    graph.node.append(first)
    graph.node.extend(ours.node)
    if place.shown == "beside":
        known = {info.name for info in graph.output}
        shown = "probabilities" if "probabilities" not in known else "calibrated_probabilities"
        graph.output.append(helper.make_tensor_value_info(shown, kind, ["rows", classes]))
    elif place.zipmap is None:
        for info in graph.output:
            if info.name == shown:
                info.CopyFrom(helper.make_tensor_value_info(shown, kind, ["rows", classes]))
    final = _PREFIX + "answer" if place.zipmap is not None else shown
    last = helper.make_node("Cast" if half else "Identity", [answer], [final], **({"to": kind} if half else {}))
    graph.node.append(last)
    if place.zipmap is not None:
        place.zipmap.input[0] = final
        nodes = [node for node in graph.node if node.op_type != "ZipMap"]
        zipped = [node for node in graph.node if node.op_type == "ZipMap"]
        ordered = [onnx.NodeProto.FromString(node.SerializeToString()) for node in [*nodes, *zipped]]
        del graph.node[:]
        graph.node.extend(ordered)
    return final


def _rename(graph: Any, old: str, new: str) -> None:
    for node in graph.node:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                if name == old:
                    names[i] = new


def _relabel(onnx: Any, graph: Any, ours: Any, description: Description, answer: str) -> None:
    """Let an output of labels name the class of the largest calibrated probability, where the map may change it.

    Ties are broken by the scores that the map was given, as `predict` does.
    """
    labels = [
        info
        for info in graph.output
        if info.type.tensor_type.elem_type in (onnx.TensorProto.INT64, onnx.TensorProto.STRING)
    ]
    if description.keeps_labels or len(labels) != 1:
        return
    name, text = labels[0].name, labels[0].type.tensor_type.elem_type == onnx.TensorProto.STRING
    classes = np.array(description.classes, dtype=object if text else None)
    if text:
        classes = np.array([str(c).encode() for c in description.classes], dtype=object)
    elif classes.dtype.kind not in "iub":
        raise InvalidInput(
            "the map's classes are not those of the model's label output",
            seen=f"{description.classes[:3]} for an output of whole numbers",
            hint="pass classes=[…] to the map, as the model has them",
        )
    else:
        classes = classes.astype(np.int64)
    _rename(graph, name, name + "_raw")
    graph.initializer.append(onnx.numpy_helper.from_array(classes, _PREFIX + "classes"))
    helper = onnx.helper
    ranked = answer
    if not description.one_score and description.inputs != "embeddings":
        kind = next(info.type.tensor_type.elem_type for info in ours.input)
        least = onnx.numpy_helper.from_array(
            np.array(-np.inf, helper.tensor_dtype_to_np_dtype(kind)), _PREFIX + "least"
        )
        graph.initializer.append(least)
        for op, inputs, name_of, options in (
            ("ArgMax", [answer], "first", {"axis": 1, "keepdims": 1}),
            ("GatherElements", [answer, _PREFIX + "first"], "highest", {"axis": 1}),
            ("GreaterOrEqual", [answer, _PREFIX + "highest"], "tied", {}),
            ("Where", [_PREFIX + "tied", ours.input[0].name, _PREFIX + "least"], "ranked", {}),
        ):
            graph.node.append(helper.make_node(op, inputs, [_PREFIX + name_of], _PREFIX + name_of, **options))
        ranked = _PREFIX + "ranked"
    graph.node.append(helper.make_node("ArgMax", [ranked], [_PREFIX + "top"], axis=1, keepdims=0))
    graph.node.append(helper.make_node("Gather", [_PREFIX + "classes", _PREFIX + "top"], [name]))
