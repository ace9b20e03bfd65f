"""What a fitted map has learnt: its parameters in words, and the curve it draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from ..calibrator import Calibrator
from ..types import Array

# What every fitted map has: not what it has learnt.
KNOWN = (
    "classes_",
    "n_features_in_",
    "n_samples_",
    "fit_report_",
    "feature_names_in_",
    "zero_",
    "groups_",
    "one_score_",
)
MOST_PARTS = 6  # maps inside a map that are listed one by one
MOST_NUMBERS = 8  # numbers of an array that are listed one by one
MOST_CURVES = 6  # classes that have a curve of their own: as many as there are lines to tell apart
SAME = 0.002  # curves that differ by less look like one
# Probabilities asked for: even in log-odds, from 0.001 to 0.999.
PLACES = expit(np.linspace(-6.9, 6.9, 93))


def facts_of(fitted: Calibrator) -> dict[str, Any]:
    """Return how the fit went, by name."""
    told = fitted.fit_report_
    return {
        "map": settings_of(fitted),
        "rows": fitted.n_samples_,
        "classes": len(fitted.classes_),
        "parameters": f"{fitted.n_parameters_:g}",
        "converged": "yes" if told.converged else "no",
        f"{told.loss} on the rows fitted": f"{_number(told.loss_before)} before, {_number(told.loss_after)} after",
        f"{told.loss} on other rows": _held_out(told),
        "keeps": fitted.traits.preserves,
        "at a bound": ", ".join(told.at_bound) or "nothing",
        "messages": "; ".join(m for m in (*told.messages, told.caveat) if m) or "none",
    }


def settings_of(fitted: Calibrator) -> str:
    """Return the map as it is written, but for its classes, which may be many."""
    return repr(fitted.unfitted().set_params(classes=None))


def _held_out(told: Any) -> str:
    if told.held_out_before is None or told.held_out_after is None:
        return "not known"
    return f"{_number(told.held_out_before)} before, {_number(told.held_out_after)} after"


def parameters_of(fitted: Calibrator) -> list[tuple[str, str]]:
    """Return the learnt numbers by name; of long arrays their range, of many maps inside the first few."""
    return list(_parameters(fitted, "", fitted.classes_))


def _parameters(fitted: Any, prefix: str, classes: Any) -> Iterator[tuple[str, str]]:
    for name, value in vars(fitted).items():
        if not name.endswith("_") or name.endswith("__") or name in KNOWN or _is_table(value):
            continue
        words = f"{prefix}{name[:-1].replace('_', ' ')}"
        if _is_map(value):
            yield from _parameters(value, prefix, classes)
        elif isinstance(value, (list, tuple)) and value and all(_is_map(part) for part in value):
            yield from _parts(value, prefix, classes)
        elif isinstance(value, (bool, str, int, float, np.generic, np.ndarray, list, tuple)):
            yield words, _shown(value)


def _parts(parts: Sequence[Any], prefix: str, classes: Any) -> Iterator[tuple[str, str]]:
    by_class = len(parts) == len(classes)
    for i, part in enumerate(parts[:MOST_PARTS]):
        own = f"{_class_name(classes[i])}: " if by_class else f"{type(part).__name__}: " if len(parts) > 1 else ""
        yield from _parameters(part, prefix + own, classes)
    if len(parts) > MOST_PARTS:
        yield f"{prefix}…", f"and {len(parts) - MOST_PARTS} more maps like these"


def _class_name(label: Any) -> str:
    return f"class {label}" if str(label).isdigit() else str(label)


def _is_map(value: Any) -> bool:
    return hasattr(value, "__dict__") and any(name.endswith("_") for name in vars(value))


def _is_table(value: Any) -> bool:
    """Tell whether this is what was seen of other maps, row by row."""
    return isinstance(value, (list, tuple)) and any(isinstance(row, dict) for row in value)


def _shown(value: Any) -> str:
    if isinstance(value, (bool, str)):
        return str(value)
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        return ", ".join(map(str, array.ravel()[:MOST_NUMBERS]))
    if array.size <= MOST_NUMBERS:
        return ", ".join(_number(float(v)) for v in array.ravel())
    finite = array[np.isfinite(array)]
    reach = f", {_number(float(finite.min()))} to {_number(float(finite.max()))}" if finite.size else ""
    return f"{' × '.join(map(str, array.shape))} numbers{reach}"


def _number(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "∞" if value > 0 else "-∞" if value < 0 else "–"


def curves_of(fitted: Calibrator) -> tuple[Array, dict[str, Array]]:
    """Return probabilities asked for, and what the map answers to them, by class; no curves for maps on embeddings.

    A class is given the probability p, and the others share the rest evenly. For two classes this is all there is to
    the map; for more it is one line through it. Where all classes have the same curve, there is one.
    """
    k = len(fitted.classes_)
    if fitted.traits.needs == "embeddings" or k < 2:
        return PLACES, {}
    if k == 2:
        return PLACES, {_class_name(fitted.classes_[1]): _answers(fitted, 1, k)}
    found = {_class_name(fitted.classes_[column]): _answers(fitted, column, k) for column in range(min(k, MOST_CURVES))}
    lines = np.stack(list(found.values()))
    if np.ptp(lines, axis=0).max() < SAME:
        return PLACES, {"every class" if k <= MOST_CURVES else f"each of {MOST_CURVES} classes": lines[0]}
    return PLACES, found


def _answers(fitted: Calibrator, column: int, k: int) -> Array:
    p = np.repeat(((1 - PLACES) / (k - 1))[:, None], k, axis=1)
    p[:, column] = PLACES
    given = np.log(p) if fitted.inputs == "logits" else p
    if fitted.n_features_in_ == 1:
        given = given[:, 1] - given[:, 0] if fitted.inputs == "logits" else given[:, 1]
    return np.asarray(fitted.predict_proba(given), dtype=np.float64)[:, column]
