"""A formula as plain JSON, with golden vectors: what `evaluator.js` reads, and anyone else who can follow a list."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import numpy as np

from ..arrays import in_precision
from ..errors import InvalidInput
from ..parameters import is_one_of
from ..plain import plain
from ..types import Array
from .description import Description, describe

FORMAT = "calibrant-map"
VERSION = 1  # of the format: it changes where an old reader would answer wrongly
_GOLDEN_ROWS = 12


def to_json(calibrator: Any, *, one_score: bool | None = None, dtype: str = "float32", golden: bool = True) -> str:
    """Return a fitted map as JSON text.

    ``nodes`` is a list of operations in the order of their computation (see `calibrant.formulas.graph`), ``output``
    the place of the answer, ``classes`` what its columns stand for. Infinities and NaN are the strings "inf", "-inf"
    and "nan". ``golden`` has scores and what `predict_proba` answers to them, so that a reader can test itself.

    Parameters
    ----------
    calibrator : Calibrator
    one_score : bool, optional
        Whether a row is one score, of the second of two classes; by default as in `fit`.
    dtype : {"float32", "float64"}
        Precision of the scores that it will see: tables are searched as `predict_proba` would search them.
    golden : bool
    """
    if not is_one_of(dtype, ("float32", "float64")):
        raise InvalidInput("no such dtype", seen=repr(dtype), allowed='"float32" or "float64"')
    description = describe(calibrator, one_score)
    told = as_dict(description, dtype)
    if golden:
        told["golden"] = _golden(calibrator, description, dtype)
    return json.dumps(told, allow_nan=False, separators=(",", ":"))


def as_dict(description: Description, dtype: str = "float32") -> dict[str, Any]:
    """Return what the JSON text says, without golden vectors."""
    formula = description.formula
    nodes: list[dict[str, Any]] = []
    for node in formula.nodes:
        told: dict[str, Any] = {"op": node.op, "width": node.width}
        if node.inputs:
            told["of"] = list(node.inputs)
        values = dict(node.values)
        if values.pop("as_scores", None) is not None:
            values["edges"] = in_precision(values["edges"], dtype)
        told |= {name: plain(value, nan="nan") for name, value in values.items()}
        nodes.append(told)
    return {
        "format": FORMAT,
        "version": VERSION,
        "map": description.called,
        "inputs": description.inputs,
        "one_score": description.one_score,
        "dtype": dtype,
        "classes": description.classes,
        "nodes": nodes,
        "output": formula.output,
    }


def evaluator() -> str:
    """Return the source of the JavaScript evaluator: ``calibrant(map)`` is a function of one row."""
    return files("calibrant.exports").joinpath("evaluator.js").read_text(encoding="utf-8")


def _golden(calibrator: Any, description: Description, dtype: str) -> dict[str, Any]:
    rows = _rows(calibrator, description).astype(dtype)
    return {"scores": plain(rows, nan="nan"), "probabilities": plain(calibrator.predict_proba(rows), nan="nan")}


def _rows(calibrator: Any, description: Description) -> Array:
    """Return some rows: spread scores, ties, and exact zeros where these are welcome."""
    columns = description.formula.nodes[0].width
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(_GOLDEN_ROWS, columns)) * np.geomspace(0.1, 10.0, _GOLDEN_ROWS)[:, None]
    rows[0] = 0.0
    if description.inputs == "embeddings":
        return rows
    if description.inputs == "probabilities":
        if columns == 1:
            return np.append(0.0, 1.0 / (1.0 + np.exp(-rows[1:, 0])))
        e = np.exp(rows - rows.max(axis=1, keepdims=True))
        e[-1, 1:] = 0.0
        return e / e.sum(axis=1, keepdims=True)
    if columns == 1:
        return rows[:, 0]
    rows[-1, 0] = -np.inf
    return rows
