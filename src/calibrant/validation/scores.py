"""Scores and embeddings: what maps are fitted on and applied to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import InvalidInput, caution
from ..threads import get_threads
from ..types import Floats
from .arrays import SIMPLEX_TOLERANCE, as_matrix, held_inside, is_one_score, simplex_tolerance
from .event import is_first_of_two

# The largest size of a value by type: the difference of two, and a temperature times it, are finite.
MOST: Mapping[str, float] = {"f": 1e34, "d": 1e100}
_MOST_OF_EMBEDDINGS: Mapping[str, float] = {"f": 1e15, "d": 1e100}  # whose squares are summed
# Where no value reaches this, all are read as zero: what divides by the square of their spread would overflow.
LEAST: Mapping[str, float] = {"f": 1e-18, "d": 1e-100}


@dataclass(frozen=True, eq=False)
class Scores:
    """Validated scores: (n, K) logits, C-contiguous, float32 or float64; -inf where a probability is exactly zero.

    ``columns`` are the names of a frame's columns, None for plain arrays: one where a row has one score, of an event.
    ``shape`` is the shape they came in.
    """

    logits: Floats
    columns: tuple[Any, ...] | None
    has_minus_infinity: bool
    shape: tuple[int, ...] = ()


def as_scores(values: Any, inputs: str, name: str = "scores") -> Scores:
    """Check scores, (n, K) or (n,), of the kind that the user says they are, and return them as logits.

    (n,) and (n, 1) are the score of the second of two classes: a log-odds or a probability. The kind is never guessed;
    what contradicts it is refused.
    """
    array, columns = as_matrix(values, name)
    shape = array.shape
    vector = is_one_score(shape)
    if vector:
        array = array.reshape(-1, 1)
    tolerance = simplex_tolerance(values)
    *findings, largest = _core.scan(array, tolerance, get_threads())
    _refuse_not_finite(array, findings, name)
    array = of_sensible_size(array, largest, name)
    if inputs == "probabilities":
        if findings[4] >= 0 and not vector:
            array = held_inside(array)
            *findings, _ = _core.scan(array, tolerance, get_threads())
        logits = _log_odds_pair(array, name) if vector else _log_probabilities(array, findings, tolerance, name)
        return Scores(logits, columns, bool(np.isneginf(logits).any()), shape)
    _refuse_probabilities(array, findings, vector, name)
    if vector:
        array = pair_of(array, inputs)
    return Scores(array, columns, findings[2] >= 0, shape)


def as_second(scores: Scores, inputs: str, classes: Any) -> Scores:
    """Return scores of two classes, whose only column may name the first of them: then they are turned round."""
    if not is_first_of_two(scores.columns, classes):
        return scores
    logits = scores.logits[:, ::-1]
    if inputs == "logits":  # (z, 0): one score a row is read as (0, -z)
        logits = logits - np.where(np.isneginf(logits[:, :1]), 0, logits[:, :1])
    return replace(scores, logits=np.ascontiguousarray(logits), columns=None)


def as_embeddings(values: Any, name: str = "embeddings") -> Scores:
    """Check embeddings: (n, d), finite. Any real numbers are fine."""
    array, columns = as_matrix(values, name)
    if array.ndim == 1:
        raise InvalidInput(f"{name} must be (n, d)", seen=f"shape {array.shape}", hint="Reshape your data")
    *findings, largest = _core.scan(array, SIMPLEX_TOLERANCE, get_threads())
    if findings[0] >= 0 or findings[1] >= 0 or findings[2] >= 0:
        row = max(findings[:3])
        raise InvalidInput(f"{name} contains NaN or infinity", seen=f"row {row}", allowed="finite values")
    return Scores(of_sensible_size(array, largest, name, _MOST_OF_EMBEDDINGS), columns, False, array.shape)


def of_sensible_size(array: Floats, largest: float, name: str, limits: Mapping[str, float] = MOST) -> Floats:
    """Refuse numbers whose differences or products would overflow; read numbers that are next to nothing as zero."""
    most = limits[array.dtype.char]
    if largest > most:
        raise InvalidInput(
            f"{name} are too large to compute with",
            seen=f"a value of size {largest:.3g} in {array.dtype}",
            allowed=f"values up to {most:g}",
            hint="divide all of them by the same number",
        )
    if 0 < largest < LEAST[array.dtype.char]:
        caution(f"no value of {name} is larger than {largest:.3g}: they are read as equal")
        return np.zeros_like(array)
    return array


def _refuse_not_finite(array: NDArray[Any], findings: Sequence[int], name: str) -> None:
    nan, plus, _, no_finite, _ = findings
    if nan >= 0:
        raise InvalidInput(
            f"{name} contains NaN",
            seen=f"first in row {nan}",
            hint="drop or repair these rows; nothing is imputed",
        )
    if plus >= 0:
        raise InvalidInput(
            f"{name} contains +inf (infinity)",
            seen=f"first in row {plus}",
            allowed="finite values, and -inf logits",
        )
    if no_finite >= 0 and array.shape[1] > 1:
        raise InvalidInput(
            f"{name} has a row of nothing but -inf", seen=f"row {no_finite}", allowed="one finite value a row"
        )


def _refuse_probabilities(array: NDArray[Any], findings: Sequence[int], vector: bool, name: str) -> None:
    if len(array) < 2:
        return
    log_odds = array.shape[1] == 2 and not array[:, 0].any()  # (0, log-odds), all of them one
    if not vector and findings[4] < 0 and not log_odds:
        raise InvalidInput(
            f"{name} were announced as logits but every row is a probability distribution",
            seen="rows in [0, 1] that sum to 1",
            hint='pass inputs="probabilities", or the logits themselves',
        )
    if vector and array.min() >= 0 and array.max() <= 1:
        raise InvalidInput(
            f"{name} were announced as logits but all lie in [0, 1], as probabilities do",
            seen=f"values from {array.min():.4g} to {array.max():.4g}",
            hint='pass inputs="probabilities"; if these are log-odds, pass two columns (0, log-odds)',
        )


def _log_odds_pair(array: Floats, name: str) -> Floats:
    if array.min() < 0 or array.max() > 1:
        array = held_inside(array, above=True)
    if array.min() < 0 or array.max() > 1:
        row = int(np.flatnonzero((array[:, 0] < 0) | (array[:, 0] > 1))[0])
        raise InvalidInput(
            f"{name} were announced as probabilities but leave [0, 1]",
            seen=f"{array[row, 0]:.6g} in row {row}",
            hint=_percent_hint(array)
            or 'pass inputs="logits" for log-odds'
            + ("; percentages must be divided by 100" if array.min() >= 0 and 2 < array.max() <= 100 else ""),
        )
    return pair_of(array, "probabilities")


def pair_of(column: Floats, inputs: str) -> Floats:
    """Return the logits (n, 2) of valid scores (n, 1) of the second of two classes."""
    if inputs == "logits":
        return np.hstack([np.zeros_like(column), column])
    with np.errstate(divide="ignore"):
        return np.hstack([in_double(np.log1p, -column), in_double(np.log, column)])


def in_double(function: np.ufunc, array: Floats, out: Floats | None = None) -> Floats:
    """Return a function of numbers, computed in double and rounded to their precision: the same bits wherever it is.

    Steps of a map stand at such numbers, and an export that has other last bits would take the step before.
    """
    return function(array, dtype=np.float64, out=np.empty_like(array) if out is None else out, casting="same_kind")


def _percent_hint(array: Floats) -> str:
    """What to do about numbers that look like percentages."""
    fits = array.min() >= 0 and array.max() <= 100 and np.median(array.sum(axis=1)) > 2
    if array.shape[1] > 1:
        fits = fits and bool(np.abs(array.sum(axis=1) - 100).max() <= array.shape[1])
    return "percentages must be divided by 100" if fits else ""


def _log_probabilities(array: Floats, findings: Sequence[int], tolerance: float, name: str) -> Floats:
    row = findings[4]
    if row >= 0:
        raise InvalidInput(
            f"{name} were announced as probabilities but a row is not a distribution",
            seen=f"row {row} from {array[row].min():.6g} to {array[row].max():.6g}, sum {array[row].sum():.6g}",
            allowed=f"entries in [0, 1] that sum to 1 within {tolerance:g}",
            hint=_percent_hint(array) or 'pass inputs="logits" for logits, or normalise the rows',
        )
    with np.errstate(divide="ignore"):
        return in_double(np.log, array)
