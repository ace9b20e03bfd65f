"""The one door: a fitted map to a file, by what the file is for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, import_extra
from ..files.atomic import check_target, replacing
from ..parameters import is_one_of
from .description import describe
from .json_text import to_json
from .onnx_append import append_to_model
from .onnx_graph import OPSET, onnx_model
from .sql import to_sql
from .torch_module import to_torch
from .vllm import to_vllm

TARGETS = ("onnx", "torch", "sql", "json", "vllm")
_SUFFIXES = {".onnx": "onnx", ".pt2": "torch", ".sql": "sql", ".json": "json"}


def export(
    calibrator: Any,
    path: str | os.PathLike[str],
    to: str | None = None,
    *,
    model: Any = None,
    output: str | None = None,
    dtype: str = "float32",
    precision: str = "double",
    opset: int = OPSET,
    one_score: bool | None = None,
    columns: str | Sequence[str] | None = None,
    dialect: str = "duckdb",
    table: str | None = None,
    keep: Sequence[str] = (),
) -> None:
    """Write a fitted map for where the model runs.

    Parameters
    ----------
    calibrator : Calibrator
    path : path
        A kill at any moment leaves the old file or the new one.
    to : {"onnx", "torch", "sql", "json", "vllm"}, optional
        By default what the name ends in: .onnx, .pt2 (an exported torch program), .sql, .json.
    model, output
        For ONNX: a model to append the map to, and the name of its output of scores; see `append_to_model`.
    dtype : {"float32", "float64"}
        For ONNX and JSON: the precision of the scores.
    precision : {"double", "single"}
        For ONNX and torch: what is computed in between; single for runtimes without double precision.
    opset : int
        For ONNX.
    one_score : bool, optional
        Whether a row is one score, of the second of two classes; by default as in `fit`.
    columns, dialect, table, keep
        For SQL; see `to_sql`.

    Examples
    --------
    >>> import numpy as np, calibrant
    >>> logits = np.array([[2.0, 0.0], [3.0, 0.0], [0.0, 1.0], [4.0, 0.0]])
    >>> calibrator = calibrant.TemperatureScaling().fit(logits, [0, 1, 1, 0])
    >>> calibrant.export(calibrator, "map.json")  # doctest: +SKIP
    """
    check_target(path)
    target = to if to is not None else _SUFFIXES.get(Path(path).suffix.lower())
    if target is None or not is_one_of(target, TARGETS):
        raise InvalidInput(
            "what to export to is not clear",
            seen=repr(os.fspath(path) if to is None else to),
            allowed=f"{', '.join(TARGETS)}; or a path that ends in {', '.join(_SUFFIXES)}",
        )
    if target == "onnx":
        if model is not None:
            found = append_to_model(calibrator, model, output=output, precision=precision)
        else:
            found = onnx_model(describe(calibrator, one_score), dtype=dtype, precision=precision, opset=opset)
        data = found.SerializeToString(deterministic=True)
    elif target == "torch":
        _save_program(calibrator, path, one_score, precision)
        return
    elif target == "vllm":
        data = to_vllm(calibrator).encode() + b"\n"
    elif target == "json":
        data = to_json(calibrator, one_score=one_score, dtype=dtype).encode() + b"\n"
    elif columns is None:
        raise InvalidInput(
            "SQL needs the names of the columns of scores",
            hint="one for one score; for several one a class, and the table (columns, table; --columns, --table)",
        )
    else:
        data = to_sql(calibrator, columns, dialect, table=table, keep=keep).encode() + b"\n"
    with replacing(path) as out:
        out.write(data)


def _save_program(calibrator: Any, path: Any, one_score: bool | None, precision: str) -> None:
    """Write what ``torch.export.load`` reads: the map for any number of rows of float32 scores."""
    torch = import_extra("torch", "torch", "a torch program")
    tools = import_extra("torch.export", "torch", "a torch program")
    description = describe(calibrator, one_score)
    module = to_torch(calibrator, one_score=one_score, precision=precision)
    width = description.formula.nodes[0].width
    scores = torch.zeros((4,) if description.one_score else (4, width))
    program = tools.export(module, (scores,), dynamic_shapes=({0: tools.Dim("rows")},))
    with replacing(path) as out:
        tools.save(program, out)
