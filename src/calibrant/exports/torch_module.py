"""A formula as a ``torch.nn.Module``: a graph of torch's own operations, which scripts, exports and differentiates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput, import_extra
from ..formulas.graph import GRID, Node
from ..parameters import is_one_of
from ..types import Integers
from .description import Description, describe

_SAME = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "maximum": "maximum", "minimum": "minimum"}
_SAME |= {"exp": "exp", "log": "log", "greater_equal": "ge", "greater": "gt", "equal": "eq", "is_nan": "isnan"}
_SAME |= {"where": "where"}
_ROWS = {"row_max": ("amax", [1], True), "row_min": ("amin", [1], True), "row_sum": ("sum", [1], True)}
_ROWS |= {"softmax": ("softmax", 1)}


def to_torch(calibrator: Any, *, one_score: bool | None = None, precision: str = "double") -> Any:
    """Return a fitted map as a ``torch.nn.Module``.

    ``torch.nn.Sequential(model, calibrator.to_torch())`` answers calibrated probabilities. The module follows the dtype
    and the device of its scores, passes ``torch.export`` and ``torch.jit.script``, and has gradients where the map has
    them. Its numbers are no parameters, and no ``half()`` or ``to(dtype)`` rounds them.

    Parameters
    ----------
    calibrator : Calibrator
    one_score : bool, optional
        Whether a row is one score, of the second of two classes; by default as in `fit`.
    precision : {"double", "single"}
        What is computed in between; single is for devices without double precision (Apple's).

    Examples
    --------
    >>> import numpy as np, torch
    >>> from calibrant import TemperatureScaling
    >>> logits = np.array([[2.0, 0.0], [3.0, 0.0], [0.0, 1.0], [4.0, 0.0]])
    >>> module = TemperatureScaling().fit(logits, [0, 1, 1, 0]).to_torch()
    >>> module(torch.tensor([[2.0, 0.0]])).shape
    torch.Size([1, 2])
    """
    return torch_module(describe(calibrator, one_score), precision)


def torch_module(description: Description, precision: str = "double") -> Any:
    """Return the module of a description."""
    torch = import_extra("torch", "torch", "a torch module")
    fx = import_extra("torch.fx", "torch", "a torch module")
    if not is_one_of(precision, ("double", "single")):
        raise InvalidInput("no such precision", seen=repr(precision), allowed='"double" or "single"')
    graph = _TorchGraph(torch, fx.Graph(), description, precision)
    module = fx.GraphModule(graph.root, graph.write(), "Calibrated")
    module.eval()
    return module


class _TorchGraph:
    """The calls of a graph as they are written. Constants are kept as whole numbers, which no cast rounds."""

    def __init__(self, torch: Any, graph: Any, description: Description, precision: str) -> None:
        self.torch, self.graph, self.description = torch, graph, description
        self.root = torch.nn.Module()
        double = precision == "double"
        self.dtype, self.numpy_dtype = (torch.float64, np.float64) if double else (torch.float32, np.float32)
        self.constants: dict[Any, Any] = {}
        self.buffers: dict[Any, Any] = {}

    def write(self) -> Any:
        """Write all calls and return the graph."""
        formula = self.description.formula
        given = self.graph.placeholder("scores")
        # A single-precision zero lifts half precision to single and leaves double alone, as `predict_proba` does.
        zero = self.method("to", self.whole(np.zeros(1)), self.torch.float32)
        self.seen = self.call("add", given, zero)
        values: list[Any] = []
        for node in formula.nodes:
            inputs = [values[i] for i in node.inputs]
            if node.op in _SAME:
                values.append(self.call(_SAME[node.op], *inputs))
            elif node.op in _ROWS:
                name, *how = _ROWS[node.op]
                values.append(self.call(name, *inputs, *how))
            else:
                values.append(getattr(self, "_" + node.op)(node, *inputs))
        self.graph.output(self.method("type_as", values[formula.output], given))
        return self.graph

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Add a call of a function of torch."""
        return self.graph.call_function(getattr(self.torch, name), arguments, options)

    def method(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Add a call of a tensor's method."""
        return self.graph.call_method(name, arguments, options)

    def number(self, values: Any) -> Any:
        """Return a constant in the precision of the graph: m·2^e, whole numbers m and e."""
        with np.errstate(over="ignore"):
            array = np.ascontiguousarray(values, dtype=self.numpy_dtype)
        if np.isnan(array).all():
            most = self.number(np.full_like(array, np.inf))
            return self.call("sub", most, most)
        whole, power = _taken_apart(array)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            m = self.method("to", self._buffer(whole), self.dtype)
            self.constants[key] = self.call("ldexp", m, self._buffer(power))
        return self.constants[key]

    def whole(self, values: Any) -> Any:
        """Return a constant of whole numbers."""
        return self._buffer(np.ascontiguousarray(values, dtype=np.int64))

    def _buffer(self, numbers: NDArray[Any]) -> Any:
        key = (numbers.dtype.str, numbers.shape, numbers.tobytes())
        if key not in self.buffers:
            name = f"constant_{len(self.buffers)}"
            self.root.register_buffer(name, self.torch.from_numpy(numbers.copy()))
            self.buffers[key] = self.graph.get_attr(name)
        return self.buffers[key]

    def _input(self, node: Node) -> Any:
        given = self.method("reshape", self.seen, -1, 1) if self.description.one_score else self.seen
        return self.method("to", given, self.dtype)

    def _constant(self, node: Node) -> Any:
        return self.number(node.values["values"][None, :])

    def _first_top(self, node: Node, given: Any) -> Any:
        place = self.call("argmax", given, 1, True)
        return self.call("eq", place, self.whole(np.arange(node.width)[None, :]))

    def _matmul(self, node: Node, given: Any) -> Any:
        return self.call("matmul", given, self.number(node.values["matrix"]))

    def _column(self, node: Node, given: Any) -> Any:
        place = int(node.values["place"])
        return self.call("narrow", given, 1, place, 1)

    def _stack(self, node: Node, *given: Any) -> Any:
        return self.call("cat", list(given), 1)

    def _rounded(self, node: Node, given: Any) -> Any:
        if self.dtype is self.torch.float32:
            return given
        return self.method("to", self.method("type_as", given, self.seen), self.dtype)

    def _gridded(self, node: Node, given: Any) -> Any:
        if self.dtype is self.torch.float32:
            return given
        return self.call("sub", self.call("add", given, self.number([GRID])), self.number([GRID]))

    def _next_up(self, node: Node, given: Any) -> Any:
        """Larger by a unit of single or double precision; half precision may tie them again, as its softmax would."""
        single = self.number([1.0 + np.finfo(np.float32).eps])
        if self.dtype is self.torch.float32:
            return self.call("mul", given, single)
        between = self._rounded(node, self.number([1.0 + 2.0**-30]))  # single precision rounds this to one
        double = self.number([1.0 + np.finfo(np.float64).eps])
        return self.call("mul", given, self.call("where", self.call("gt", between, self.number([1.0])), double, single))

    def _locate(self, node: Node, given: Any) -> Any:
        edges = node.values["edges"]
        shared = len(edges) == 1
        found = self.number(edges[0] if shared else edges[node.values["groups"]])
        if "as_scores" in node.values:
            found = self._rounded(node, found)
        if shared:
            return self.call("bucketize", self.method("contiguous", given), found, right=True)
        columns = self.method("contiguous", self.call("t", given))
        place = self.call("searchsorted", found, columns, right=True)
        return self.call("t", place)

    def _pick(self, node: Node, place: Any) -> Any:
        table = node.values["table"]
        starts = self.whole(node.values["groups"][None, :] * table.shape[1])
        return self.call("take", self.number(table.ravel()), self.call("add", place, starts))


def _taken_apart(array: NDArray[Any]) -> tuple[Integers, Integers]:
    """Return m and e of m·2^e: infinities have an e beyond all numbers."""
    digits, lowest = (24, -149) if array.dtype == np.float32 else (53, -1074)
    wide = array.astype(np.float64)
    finite = np.isfinite(wide)
    _, power = np.frexp(np.where(finite, wide, 0.0))
    power = np.maximum(power.astype(np.int64) - digits, lowest)
    whole = np.where(finite, np.ldexp(np.where(finite, wide, 0.0), np.minimum(-power, 1000)), 0.0)
    whole = np.where(power < -1000, np.ldexp(whole, -power - 1000), whole)
    return np.where(finite, whole, np.sign(wide)).astype(np.int64), np.where(finite, power, 2000)
