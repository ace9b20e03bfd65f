"""The compiled core called by someone who does not know it: any shapes, any values, any number of threads.

Whatever it is given, a kernel answers or raises ValueError, TypeError or MemoryError; it never ends the process, and
never hangs. Under the sanitizers (``make sanitize``) this also says that it touches no memory but its own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import calibrant
from calibrant import _core

from .harness import attempt

REFUSALS = (ValueError, TypeError, MemoryError)
Rng = np.random.Generator
Sizes = dict[str, int]

# The shape of each argument in sizes: n rows, k columns, g groups, m of anything else. An argument that means another
# thing in one kernel has a line of its own.
SHAPES: dict[str, tuple[str | int, ...]] = {
    **dict.fromkeys(
        ["logits", "probabilities", "values", "odds", "out", "marginals", "scores", "products"], ("n", "k")
    ),
    **dict.fromkeys(["labels", "weights", "row_weights", "places", "shares", "own", "skip", "group", "excess"], ("n",)),
    **dict.fromkeys(["d", "b", "groups", "floors", "half_norms", "prior"], ("k",)),
    **dict.fromkeys(["knots", "edges", "bounds", "sorted"], ("m",)),
    **dict.fromkeys(["centres", "targets"], ("n", 2)),
    "betas": ("g",),
    "starts": ("g+1",),
    "seeds": ("g",),
    "gram": ("m", "m"),
    "linear": ("m",),
    "start": ("m",),
    "positives": ("n",),
    "outcomes": ("n",),
    "points": ("m",),
    "coefficients": ("g", 3),
    "stations": ("g",),
    "noise": ("k", "m"),
    "packed": ("t", "k", 64),
    "reach": (2, "k"),
    "directions": ("k+1", "m"),
    "shift": ("k",),
    "rows": ("n", "k"),
    **dict.fromkeys(["mass", "events", "gaps"], ("g", "m+1")),
    "row_sums": ("g", "k"),
    "columns": ("n", "k"),
    "w": ("k",),
    "uniforms": ("g", 3),
    "table": ("g", "m+1"),
    "frames": ("g", 6),
    "intercepts": ("g", "k"),
    "sums": ("n", "g"),
    "shifts": ("n", 1),
    "first": ("c",),
    **dict.fromkeys(["alphas", "filled"], ("g", "m")),
}
OWN_SHAPES: dict[tuple[str, str], tuple[str | int, ...]] = {
    ("curve_sums", "values"): ("g", "m"),
    ("curve_apply", "values"): ("g", "m"),
    ("isotonic_apply", "values"): ("m",),
    ("bin_look_up", "scores"): ("n",),
    ("bin_look_up", "out"): ("n",),
    ("bin_look_up", "table"): ("m+1",),
    ("bin_lift", "edges"): ("g", "m"),
    ("bin_sums", "edges"): ("g", "m"),
    ("binwise_apply", "betas"): ("m+1",),
    ("pair_bins", "scores"): ("n",),
    ("imax", "scores"): ("n",),
    ("cell_loss", "scores"): ("n",),
    ("pool_adjacent", "sums"): ("n",),
    ("sweep", "values"): ("n",),
    ("sweep", "prefix"): (3, "n+1"),
    ("triweight", "places"): ("n",),
    ("triweight", "weights"): ("g", "m"),
    ("add_linear_mixture", "columns"): ("g",),
    ("add_linear_mixture", "weights"): ("m",),
    ("add_class_kernels", "weights"): ("k",),
    ("finish_class_kernels", "prior"): ("g",),
    ("finish_class_kernels", "out"): ("n", "g"),
    ("spread_confidence", "betas"): ("g", "m"),
    ("cell_sums", "shift"): ("c",),
    ("cell_sums", "out"): ("c", 2),
    ("cell_regression", "features"): ("m", "n"),
    ("score_cells", "odds"): ("n",),
    ("cell_regression", "theta"): ("m",),
    **{(f, "weights"): ("k+1", "k") for f in ("matrix_sums", "matrix_blocks", "matrix_moment", "matrix_along")},
    ("logistic_sums", "targets"): ("g", 2),
}
RISING = {"knots", "edges", "bounds", "sorted", "starts", "stations", "points", "prefix"}


@cache
def signatures() -> dict[str, list[tuple[str, str]]]:
    """Return each kernel's arguments with their types, from the stub."""
    stub = Path(calibrant.__file__).parent / "_core.pyi"
    found = {}
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = [(a.arg, ast.unparse(a.annotation) if a.annotation else "") for a in node.args.args]
    return found


def case(rng: Rng) -> str:
    """Call one kernel."""
    names = sorted(signatures())
    name = names[rng.integers(len(names))]
    sizes = _sizes(rng)
    if name.startswith(("matrix_", "curve_")):  # whose results grow with the square of these
        sizes |= {"k": min(sizes["k"], 33), "g": min(sizes["g"], 5)}
    kind = np.float32 if rng.random() < 0.5 else np.float64
    arguments = {a: _argument(rng, name, a, t, sizes, kind) for a, t in signatures()[name]}
    if rng.random() < 0.8:
        _fit_together(rng, name, arguments, sizes, kind)
    for _ in range(rng.integers(0, 3)):  # none, one or two arguments of another making
        a, t = signatures()[name][rng.integers(len(arguments))]
        arguments[a] = _argument(rng, name, a, t, _sizes(rng), kind if rng.random() < 0.8 else np.float16)
    attempt(lambda: getattr(_core, name)(**arguments), REFUSALS)
    return name


def _glances(rng: Rng, n: int) -> dict[str, Any]:
    """What kernels of rows with one score want, and keys anywhere."""
    labels, there = rng.integers(0, 2, n), rng.integers(0, 2, 1 << 16).astype(np.uint8)
    counts, held = np.zeros((1 << 20, 2), np.int32), np.full(1 << 16, int(rng.integers(-(2**31), 2**31)), np.int32)
    counts[rng.integers(0, 1 << 20, n)] = rng.integers(0, 2**31, 2)
    cell_keys, shift = rng.integers(-(2**31), 2**31, n).astype(np.int32), np.full(1 << 16, 16, np.int32)
    given = {"labels": labels, "there": there, "counts": counts, "held": held, "cell_keys": cell_keys, "shift": shift}
    return {**given, "first": np.arange(1 << 16, dtype=np.int32), "out": np.zeros((1 << 16, 4), np.int32)}


def _fit_together(rng: Rng, name: str, arguments: dict[str, Any], sizes: Sizes, kind: Any) -> None:
    """Change what shapes alone do not make fit: without it some kernels would refuse nearly every call."""
    n, k, m = sizes["n"], sizes["k"], sizes["m"]
    g = max(1, sizes["g"])
    if "starts" in arguments:
        end = {"isotonic_apply": m, "negatives_between": m, "merge_close": m, "add_class_kernels": k}.get(name, n)
        arguments["starts"] = np.unique(np.append(rng.integers(0, end + 1, g), [0, end]))
        arguments.update(
            {"groups": rng.integers(0, max(1, len(arguments["starts"]) - 1), k)} if "groups" in arguments else {}
        )
    if name == "cell_sums":
        bits = int(rng.integers(1, 8))
        arguments |= {"bits": bits, "group_count": g, "first": None, "shift": None, "out": np.zeros((g << bits, 2))}
        arguments["groups"] = rng.integers(-1, g, k)
        if rng.random() < 0.5:
            fine = int(rng.integers(0, 4))
            arguments["first"] = (np.arange(g << bits) << fine).astype(np.int32)
            arguments["shift"] = np.full(g << bits, 32 - bits - fine, np.int32)
            arguments["out"] = np.zeros((g << (bits + fine), 2))
    elif name in {"score_cells", "split_glances", "fold_cells"}:
        arguments |= {a: value for a, value in _glances(rng, n).items() if a in arguments}
    elif name == "keep_shares" and m and k:
        arguments["packed"], arguments["reach"] = _core.pack_noise(rng.normal(size=(k, m)).astype(kind))
        arguments["draws"] = m
    elif name.startswith("matrix_"):
        side = k + 1 + (arguments["scale"] != 0)
        arguments["weights"] = rng.normal(size=(side, k)) * float(rng.choice([0, 1, 1e200]))
        arguments |= {"shift": rng.normal(size=side - 1)} if "shift" in arguments else {}
        arguments |= {"directions": rng.normal(size=(side, m))} if "directions" in arguments else {}
    elif name == "imax":
        bins = int(rng.integers(1, 20))
        arguments |= {"bins": bins, "uniforms": rng.random((bins, 2))}
    elif name in {"temperature_sums", "keep_probabilities"}:
        arguments |= (
            {"loss": int(rng.integers(2))} if "loss" in arguments else {"noise": int(rng.integers(2)), "nodes": 33}
        )
    elif name == "add_class_kernels":
        arguments |= {"first": 0, "sums": np.zeros((n, len(arguments["starts"]) - 1))}
    elif name == "add_linear_mixture":
        panel = 64 // np.dtype(kind).itemsize
        widths = rng.choice([1, k, k + 1], sizes["g"])
        size = sum(k if w == 1 else w * (-(-k // panel) * panel) for w in widths)
        arguments |= {"columns": widths.astype(np.int64), "weights": rng.normal(size=size).astype(kind)}
    elif name in {"sweep", "triweight"}:
        steps = np.abs(rng.normal(size=(3, n + 1)))
        arguments |= (
            {"prefix": np.cumsum(steps, axis=1), "values": np.sort(rng.random(n))} if name == "sweep" else {"h": 0.3}
        )


def _sizes(rng: Rng) -> Sizes:
    n = int(rng.choice([0, 1, 2, 3, 5, 8, 17, 40, 100, 300]))
    k = int(rng.choice([0, 1, 2, 3, 4, 7, 16, 17, 33, 65, 129, 200]))
    m = int(rng.choice([0, 1, 2, 3, 5, 9, 33, 70]))
    g = int(rng.choice([0, 1, 1, 2, 3, k, k, 5]))
    if n * k > 5000:
        n = 5000 // k
    return {"n": n, "k": k, "m": m, "g": g, "t": -(-m // 64), "c": int(g << 3)}


def _argument(rng: Rng, kernel: str, name: str, kind: str, sizes: Sizes, floating: Any) -> Any:
    if kind.endswith("| None") and rng.random() < 0.3:
        return None
    if "NDArray" not in kind:
        return _scalar(rng, name, kind, sizes)
    shape = OWN_SHAPES.get((kernel, name), SHAPES.get(name, ("n",)))
    lengths = tuple(_length(size, sizes) for size in shape)
    if "int" in kind:
        array = _indices(rng, name, lengths, sizes, np.dtype(kind.split("np.")[1].split("]")[0]))
    elif "bool" in kind:
        array = rng.random(lengths) < 0.5
    else:
        with np.errstate(over="ignore"):
            array = _numbers(rng, name, lengths).astype(floating if "floating" in kind else np.float64)
    if rng.random() < 0.02:
        array = array[..., ::-1]  # not contiguous
    if rng.random() < 0.02:
        array.flags.writeable = False
    return array


def _length(size: str | int, sizes: Sizes) -> int:
    if isinstance(size, int):
        return size
    name, _, more = size.partition("+")
    return sizes[name] + int(more or 0)


def _scalar(rng: Rng, name: str, kind: str, sizes: Sizes) -> Any:
    if name == "threads":
        wild = [0, -1, 1024, 2**29, 2**31 - 1, -(2**31)]
        return int(rng.choice([1, 2, 3, 4] if rng.random() < 0.9 else wild))
    if kind.startswith("bool"):
        return bool(rng.random() < 0.5)
    if kind.startswith("int"):
        likely = [sizes["g"], sizes["k"], sizes["m"], 1, 2, 3, sizes["c"]]
        wild = [0, -1, 16, 31, 64, 1000, 2**20, 2**31, 2**40, 2**62, -(2**63)]
        return int(rng.choice(likely if rng.random() < 0.8 else wild))
    return float(rng.choice([1.0, 0.5, 2.0, 1e-9, 0.0, -1.0, 1e300, 1e-320, np.nan, np.inf, -np.inf]))


def _indices(rng: Rng, name: str, shape: tuple[int, ...], sizes: Sizes, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    high = max(1, sizes["k"] if name in {"labels", "skip"} else sizes["g"])
    if dtype.kind == "u":
        return rng.integers(0, 2**63, shape).astype(dtype)
    values = rng.integers(0, high, shape)
    if name == "starts" and len(shape) == 1 and shape[0]:
        values = np.sort(rng.integers(0, sizes["n"] + 1, shape))
        values[0] = 0
        values[-1] = int(rng.choice([sizes["n"], sizes["m"], sizes["k"]]))
    if values.size and rng.random() < 0.15:
        values.flat[rng.integers(values.size)] = rng.choice([-1, -2, high, 2**31 - 1, -(2**31), 10**6])
    if values.size and dtype == np.int64 and rng.random() < 0.03:
        values.flat[rng.integers(values.size)] = rng.choice([2**62, -(2**63), 2**63 - 1])
    return values.astype(dtype)


def _numbers(rng: Rng, name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    makers: list[Callable[[], Any]] = [
        lambda: rng.normal(size=shape),
        lambda: rng.random(shape),
        lambda: np.zeros(shape),
        lambda: rng.normal(size=shape) * 10.0 ** rng.integers(-320, 308),
        lambda: rng.integers(-2, 3, shape).astype(float),
    ]
    values = makers[rng.integers(len(makers))]()
    if name in RISING and rng.random() < 0.8:
        values = np.sort(values, axis=-1)
    if values.size and rng.random() < 0.25:
        values.flat[rng.integers(values.size, size=3)] = rng.choice([np.nan, np.inf, -np.inf, 1.7e308, -1e-320, 1e20])
    return values
