"""A formula as an ONNX graph: every operation is one node or a few, tables are searched by unrolled bisection."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import in_precision
from ..errors import InvalidInput, import_extra
from ..formulas.graph import GRID, Node
from ..parameters import is_one_of
from ..types import Array, Integers
from .description import Description

OPSET = 17  # of 2022: every runtime in use has it; 13 is the first whose Softmax means rows
_LEAST_OPSET = 13
DTYPES = {"float32": np.float32, "float64": np.float64}
_SAME = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "maximum": "Max", "minimum": "Min", "exp": "Exp"}
_SAME |= {"log": "Log", "greater_equal": "GreaterOrEqual", "greater": "Greater", "equal": "Equal", "is_nan": "IsNaN"}
_SAME |= {"where": "Where"}
_NEXT_TO_ONE = 1e-4  # onnxruntime takes what is within 1e-5 of one for one
_ROWS = {"row_max": "ReduceMax", "row_min": "ReduceMin", "row_sum": "ReduceSum"}


def onnx_model(
    description: Description,
    *,
    dtype: str = "float32",
    precision: str = "double",
    opset: int = OPSET,
    ir_version: int | None = None,
    prefix: str = "",
    input_name: str = "scores",
) -> Any:
    """Return a checked ModelProto.

    Parameters
    ----------
    description : Description
    dtype : {"float32", "float64"}
        Of the scores and of the probabilities.
    precision : {"double", "single"}
        What is computed in between. Double answers as `predict_proba` does at every edge of a table; single is for
        runtimes without double precision, its edges rounded so that float32 scores stay on their side.
    opset : int
    ir_version : int, optional
        By default the lowest that knows the opset.
    prefix, input_name : str
        Of the names in the graph.
    """
    onnx = import_extra("onnx", "onnx", "writing ONNX")
    if not is_one_of(dtype, DTYPES) or not is_one_of(precision, ("double", "single")):
        raise InvalidInput(
            "no such precision",
            seen=f"dtype={dtype!r}, precision={precision!r}",
            allowed='dtype "float32" or "float64", precision "double" or "single"',
        )
    if opset < _LEAST_OPSET:
        raise InvalidInput("the opset is too old", seen=str(opset), allowed=f"{_LEAST_OPSET} or later")
    graph = OnnxGraph(onnx, description, dtype, precision, opset, prefix, input_name)
    graph.write()
    helper = onnx.helper
    opsets = [helper.make_opsetid("", opset)]
    version = helper.find_min_ir_version_for(opsets) if ir_version is None else ir_version
    model = helper.make_model(graph.proto(), opset_imports=opsets, ir_version=version, producer_name="calibrant")
    facts = {"calibrant": description.called, "inputs": description.inputs, "classes": json.dumps(description.classes)}
    helper.set_model_props(model, facts)
    onnx.checker.check_model(model, full_check=True)
    return model


class OnnxGraph:
    """The nodes of a graph as they are written, and its constants."""

    def __init__(
        self, onnx: Any, description: Description, dtype: str, precision: str, opset: int, prefix: str, input_name: str
    ) -> None:
        self.helper, self.numpy_helper, self.kinds = onnx.helper, onnx.numpy_helper, onnx.TensorProto
        self.description, self.opset, self.prefix = description, opset, prefix
        self.input_name = prefix + input_name
        self.output_name = prefix + "probabilities"
        self.outside = DTYPES[dtype]
        self.inside = np.float32 if precision == "single" else np.float64
        self.nodes: list[Any] = []
        self.constants: dict[Any, Any] = {}
        self.names: list[str] = []

    def write(self) -> None:
        """Write all nodes."""
        formula = self.description.formula
        for node in formula.nodes:
            inputs = [self.names[i] for i in node.inputs]
            double = self._twice_next_to_one(node)
            if double is not None:
                half = self.node("Mul", [inputs[0], self.number(0.5)])
                self.names.append(self.node("Mul", [half, self.number(double)]))
            elif node.op in _SAME:
                self.names.append(self.node(_SAME[node.op], inputs))
            elif node.op in _ROWS:
                self.names.append(self._reduce(_ROWS[node.op], inputs[0]))
            else:
                self.names.append(getattr(self, "_" + node.op)(node, *inputs))
        out = self.names[formula.output]
        self.nodes.append(self.helper.make_node("Cast", [out], [self.output_name], to=self._kind(self.outside)))

    def _twice_next_to_one(self, node: Node) -> float | None:
        """Return 2c of a product with a number c that is next to one: onnxruntime leaves such products out.

        Half of a number times 2c rounds as its product with c does, and infinity stays what it is, unlike in a sum.
        """
        if node.op != "mul":
            return None
        values = self.description.formula.nodes[node.inputs[1]].values.get("values", np.zeros(0))
        return 2.0 * float(values[0]) if values.size == 1 and 0 < abs(values[0] - 1.0) < _NEXT_TO_ONE else None

    def proto(self) -> Any:
        """Return the graph."""
        kind, d = self._kind(self.outside), self.description
        shape = ["rows"] if d.one_score else ["rows", d.formula.nodes[0].width]
        given = self.helper.make_tensor_value_info(self.input_name, kind, shape)
        answer = self.helper.make_tensor_value_info(self.output_name, kind, ["rows", len(d.classes)])
        used = {name for node in self.nodes for name in node.input}
        tensors = [tensor for tensor in self.constants.values() if tensor.name in used]
        return self.helper.make_graph(self.nodes, self.prefix + "calibrant", [given], [answer], tensors)

    def node(self, op: str, inputs: list[str], **attributes: Any) -> str:
        """Add one node and return the name of its output, which is its own: runtimes fail on nameless ones."""
        name = f"{self.prefix}v{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def tensor(self, array: NDArray[Any]) -> str:
        """Return the name of a constant."""
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            name = f"{self.prefix}c{len(self.constants)}"
            self.constants[key] = self.numpy_helper.from_array(np.ascontiguousarray(array), name)
        return self.constants[key].name

    def number(self, values: Any) -> str:
        """Return the name of a constant in the precision of the graph."""
        with np.errstate(over="ignore"):
            return self.tensor(np.asarray(values, dtype=self.inside))

    def _kind(self, dtype: Any) -> int:
        return self.kinds.FLOAT if dtype is np.float32 else self.kinds.DOUBLE

    def _input(self, node: Node) -> str:
        given = self.input_name
        if self.description.one_score:
            given = self.node("Reshape", [given, self.tensor(np.array([-1, 1]))])
        return self.node("Cast", [given], to=self._kind(self.inside))

    def _constant(self, node: Node) -> str:
        return self.number(node.values["values"][None, :])

    def _reduce(self, op: str, given: str) -> str:
        if op == "ReduceSum" or self.opset >= 18:  # where the axes are an input
            return self.node(op, [given, self.tensor(np.array([1]))], keepdims=1)
        return self.node(op, [given], axes=[1], keepdims=1)

    def _first_top(self, node: Node, given: str) -> str:
        place = self.node("ArgMax", [given], axis=1, keepdims=1)
        return self.node("Equal", [place, self.tensor(np.arange(node.width)[None, :])])

    def _softmax(self, node: Node, given: str) -> str:
        return self.node("Softmax", [given], axis=1)

    def _matmul(self, node: Node, given: str) -> str:
        return self.node("MatMul", [given, self.number(node.values["matrix"])])

    def _column(self, node: Node, given: str) -> str:
        return self.node("Gather", [given, self.tensor(np.array([int(node.values["place"])]))], axis=1)

    def _stack(self, node: Node, *given: str) -> str:
        return self.node("Concat", list(given), axis=1)

    def _rounded(self, node: Node, given: str) -> str:
        if self.inside is self.outside or self.inside is np.float32:
            return given
        return self.node("Cast", [self.node("Cast", [given], to=self.kinds.FLOAT)], to=self._kind(self.inside))

    def _gridded(self, node: Node, given: str) -> str:
        if self.inside is np.float32:
            return given
        return self.node("Sub", [self.node("Add", [given, self.number(GRID)]), self.number(GRID)])

    def _next_up(self, node: Node, given: str) -> str:
        """As a sum: onnxruntime leaves out a product with what is nearly one."""
        eps = max(np.finfo(self.outside).eps, np.finfo(self.inside).eps)
        return self.node("Add", [given, self.node("Mul", [given, self.number(eps)])])

    def _locate(self, node: Node, given: str) -> str:
        """The number of edges at or below, by bisection: a stage halves what is left of 2^m - 1 edges."""
        edges = node.values["edges"]
        if "as_scores" in node.values:
            edges = in_precision(edges, self.outside)
        edges = _rounded_up(edges, self.inside)
        length = edges.shape[1]
        flat, starts = self.tensor(edges.ravel()), node.values["groups"][None, :] * length
        place, step = "", (length + 1) // 2
        while step:
            probe = self.tensor(starts + step - 1) if not place else self._shifted(place, starts + step - 1)
            above = self.node("GreaterOrEqual", [given, self.node("Gather", [flat, probe])])
            gain = self.node("Mul", [self.node("Cast", [above], to=self.kinds.INT64), self.tensor(np.array(step))])
            place = gain if not place else self.node("Add", [place, gain])
            step //= 2
        return place

    def _shifted(self, place: str, by: Integers) -> str:
        return self.node("Add", [place, self.tensor(by)])

    def _pick(self, node: Node, place: str) -> str:
        table = node.values["table"]
        starts = node.values["groups"][None, :] * table.shape[1]
        return self.node("Gather", [self.number(table.ravel()), self._shifted(place, starts)])


def _rounded_up(edges: Array, dtype: Any) -> NDArray[Any]:
    """Return the least numbers of the dtype that are not below the edges: comparisons by ≥ come out the same."""
    with np.errstate(over="ignore"):
        found = edges.astype(dtype)
    return np.where(found < edges, np.nextafter(found, dtype(np.inf)), found).astype(dtype)
