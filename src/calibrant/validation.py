"""The one place where user input is checked and becomes arrays."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from . import _core
from .errors import InvalidInput, InvalidType
from .threads import get_threads

__all__ = [
    "SIMPLEX_TOLERANCE",
    "Probabilities",
    "Scores",
    "as_array",
    "as_embeddings",
    "as_labels",
    "as_probabilities",
    "as_scores",
    "as_weights",
    "floored",
    "refuse_swapped",
]

# Rows of real probability files sum to one up to rounding of the file's writer (1.00002 in one of ours).
SIMPLEX_TOLERANCE = 1e-3

# log of the smallest positive float32: what an exact zero among probabilities at most was before it was rounded away.
ZERO_LOG = -104.0


@dataclass(frozen=True, eq=False)
class Scores:
    """Validated scores: (n, K) logits, C-contiguous, float32 or float64; -inf where a probability is exactly zero.

    ``columns`` are the names of a frame's columns, None for plain arrays; ``shape`` is the shape they came in.
    """

    logits: NDArray[np.floating]
    columns: tuple[Any, ...] | None
    has_minus_infinity: bool
    shape: tuple[int, ...] = ()


def as_array(values: Any, name: str) -> tuple[NDArray[Any], tuple[Any, ...] | None]:
    """Turn an array-like, a pandas or polars frame or series, or a torch tensor into a NumPy array without a copy.

    Returns the array and, for frames, the names of the columns.
    """
    if type(values) is np.ndarray:
        return values, None
    if values is None:
        raise InvalidInput(f"{name} is missing", seen="None", allowed="an array, a frame or a tensor")
    if hasattr(values, "detach"):  # a torch tensor
        tensor = values.detach().cpu()
        if str(tensor.dtype) == "torch.bfloat16":
            tensor = tensor.float()
        return tensor.numpy(), None
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise InvalidInput(
            f"{name} is a sparse matrix; dense data is required",
            seen=type(values).__name__,
            hint="call .toarray() first",
        )
    columns = tuple(values.columns) if hasattr(values, "columns") else None
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    return array, columns


def _as_float(array: NDArray[Any], name: str) -> NDArray[np.floating]:
    if array.dtype.char in "fd":
        return array
    if np.iscomplexobj(array):
        raise InvalidInput(f"Complex data not supported in {name}", seen=str(array.dtype), allowed="real numbers")
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if array.dtype not in (np.float32, np.float64):
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            kind = InvalidType if isinstance(error, TypeError) else InvalidInput
            raise kind(
                f"{name} must hold numbers",
                seen=f"dtype {array.dtype} ({error})",
                allowed="float32, float64, integers",
            ) from error
    return array


def as_matrix(values: Any, name: str) -> tuple[NDArray[np.floating], tuple[Any, ...] | None]:
    """Return a finite-shaped C-contiguous (n, d) float array, and a frame's column names."""
    array, columns = as_array(values, name)
    array = _as_float(array, name)
    if array.ndim == 0 or array.ndim > 2:
        raise InvalidInput(
            f"{name} has the wrong number of dimensions. Reshape your data",
            seen=f"shape {array.shape}",
            allowed="(n, K) or, for two classes, (n,)",
        )
    if array.shape[0] == 0:
        raise InvalidInput(f"{name} is empty: 0 sample(s)", seen=f"shape {array.shape}", allowed="at least one row")
    if array.ndim == 2 and array.shape[1] == 0:
        raise InvalidInput(
            f"{name} has no columns: 0 feature(s) (shape={array.shape}) while a minimum of 1 is required.",
            allowed="one column a class",
        )
    return np.ascontiguousarray(array), columns


def as_scores(values: Any, inputs: str, name: str = "scores") -> Scores:
    """Check scores of the announced kind and return them as logits.

    Parameters
    ----------
    values : array-like of shape (n, K) or (n,)
        (n,) and (n, 1) are the score of the second of two classes: a log-odds or a probability.
    inputs : {"logits", "probabilities"}
        What the user says they are. Never guessed; what contradicts it is refused.
    """
    array, columns = as_matrix(values, name)
    shape = array.shape
    vector = array.ndim == 1 or array.shape[1] == 1
    if vector:
        array, columns = array.reshape(-1, 1), None
    findings = _core.scan(array, SIMPLEX_TOLERANCE, get_threads())
    _refuse_not_finite(array, findings, name)
    if inputs == "probabilities":
        logits = _log_odds_pair(array, name) if vector else _log_probabilities(array, findings, name)
        return Scores(logits, columns, bool(np.isneginf(logits).any()), shape)
    _refuse_probabilities(array, findings, vector, name)
    if vector:
        array = np.hstack([np.zeros_like(array), array])
    return Scores(array, columns, findings[2] >= 0, shape)


def as_embeddings(values: Any, name: str = "embeddings") -> Scores:
    """Check embeddings: (n, d), finite. Any real numbers are fine."""
    array, columns = as_matrix(values, name)
    if array.ndim == 1:
        raise InvalidInput(f"{name} must be (n, d)", seen=f"shape {array.shape}", hint="Reshape your data")
    findings = _core.scan(array, SIMPLEX_TOLERANCE, get_threads())
    if findings[0] >= 0 or findings[1] >= 0 or findings[2] >= 0:
        row = max(findings[:3])
        raise InvalidInput(f"{name} contains NaN or infinity", seen=f"row {row}", allowed="finite values")
    return Scores(array, columns, False, array.shape)


def _refuse_not_finite(array: NDArray[Any], findings: tuple[int, ...], name: str) -> None:
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


def _refuse_probabilities(array: NDArray[Any], findings: tuple[int, ...], vector: bool, name: str) -> None:
    if len(array) < 2:
        return
    if not vector and findings[4] < 0:
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


def _log_odds_pair(array: NDArray[np.floating], name: str) -> NDArray[np.floating]:
    if array.min() < 0 or array.max() > 1:
        row = int(np.flatnonzero((array[:, 0] < 0) | (array[:, 0] > 1))[0])
        raise InvalidInput(
            f"{name} were announced as probabilities but leave [0, 1]",
            seen=f"{array[row, 0]!r} in row {row}",
            hint='pass inputs="logits" for log-odds',
        )
    with np.errstate(divide="ignore"):
        return np.hstack([np.log1p(-array), np.log(array)])


def _log_probabilities(array: NDArray[np.floating], findings: tuple[int, ...], name: str) -> NDArray[np.floating]:
    row = findings[4]
    if row >= 0:
        raise InvalidInput(
            f"{name} were announced as probabilities but a row is not a distribution",
            seen=f"row {row} from {array[row].min():.6g} to {array[row].max():.6g}, sum {array[row].sum():.6g}",
            allowed=f"entries in [0, 1] that sum to 1 within {SIMPLEX_TOLERANCE:g}",
            hint='pass inputs="logits" for logits, or normalise the rows',
        )
    with np.errstate(divide="ignore"):
        return np.log(array)


def floored(scores: Scores) -> NDArray[np.floating]:
    """Logits in which -inf has become a finite floor.

    The floor of a row is its largest logit less 104 (an exact zero stands for anything a float32 softmax rounds
    away), or its smallest finite logit where that is lower, so that the order of a row is kept.
    """
    z = scores.logits
    if not scores.has_minus_infinity:
        return z
    finite = np.where(np.isneginf(z), np.inf, z)
    floor = np.minimum(z.max(axis=1, keepdims=True) + z.dtype.type(ZERO_LOG), finite.min(axis=1, keepdims=True))
    return np.where(np.isneginf(z), floor, z)


def as_labels(
    y: Any, k: int, n: int, classes: Any = None, columns: tuple[Any, ...] | None = None, name: str = "y"
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Labels as column indices, and the classes in the order of the columns.

    The classes are, in this order of preference: the ones given; the column names of the frame that held the scores,
    when every label is one of them; 0 … K-1, when every label is such an integer; the sorted distinct labels, when
    there are exactly K (False and True too).
    """
    labels = _label_array(y, n, name)
    if classes is not None:
        known = _known_classes(classes, k)
        return _positions(labels, known, name), known
    if columns is not None and set(labels.tolist()) <= set(columns):
        known = _plain(np.array(columns, dtype=object))
        return _positions(labels, known, name), known
    if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < k:
        return labels.astype(np.int64, copy=False), np.arange(k)
    distinct, places = np.unique(labels, return_inverse=True)
    if len(distinct) == k:
        return places.astype(np.int64, copy=False), distinct
    raise InvalidInput(
        f"{name} does not fit the {k} columns of the scores",
        seen=f"{len(distinct)} distinct labels: {_shorten(distinct)}",
        allowed=f"integers 0 to {k - 1}, or exactly {k} distinct labels",
        hint="pass classes=[…] with the label of each column, in order; classes may be missing from y",
    )


def _known_classes(classes: Any, k: int) -> NDArray[Any]:
    known = _plain(as_array(classes, "classes")[0])
    if known.ndim != 1 or len(known) != k or len(set(known.tolist())) != k:
        raise InvalidInput(
            "classes must name each column of the scores once",
            seen=f"shape {known.shape} for {k} columns: {_shorten(known.ravel())}",
        )
    return known


def _label_array(y: Any, n: int, name: str) -> NDArray[Any]:
    if y is None:
        raise InvalidInput(f"requires {name} to be passed, but the target {name} is None", allowed="one label a row")
    labels, _ = as_array(y, name)
    if labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn(
            f"A column-vector {name} was passed when a 1d array was expected", DataConversionWarning, stacklevel=4
        )
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InvalidInput(
            f"{name} must have one label a row",
            seen=f"shape {labels.shape}",
            hint="one-hot rows: pass y.argmax(axis=1)",
        )
    if len(labels) != n:
        raise InvalidInput(
            f"scores and {name} have inconsistent numbers of rows", seen=f"{n} scores, {len(labels)} labels"
        )
    if labels.dtype.kind == "O":
        _refuse_missing(labels, name)
        labels = _plain(labels)
    return _whole_numbers(labels, name) if labels.dtype.kind == "f" else labels


def _refuse_missing(labels: NDArray[Any], name: str) -> None:
    for row, label in enumerate(labels.tolist()):
        if label is None or type(label).__name__ in ("NAType", "NaTType") or label != label:
            raise InvalidInput(f"{name} has missing labels", seen=f"{label!r} in row {row}", hint="drop these rows")


def _plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Objects that are all strings, all booleans or all numbers, as an array of that kind; others are refused."""
    if labels.dtype.kind != "O":
        return labels
    values = labels.tolist()
    for kinds in (str, (bool, np.bool_), (int, float, np.integer, np.floating)):
        if all(isinstance(value, kinds) for value in values):
            return np.array(values)
    raise InvalidInput(
        "Unknown label type: labels must be all strings, all numbers or all booleans",
        seen=", ".join(sorted({type(value).__name__ for value in values})),
    )


def _whole_numbers(labels: NDArray[Any], name: str) -> NDArray[np.int64]:
    if not np.isfinite(labels).all():
        raise InvalidInput(f"{name} contains NaN or infinity", seen="a label that is no number")
    if (labels != np.floor(labels)).any():
        raise InvalidInput(
            f"Unknown label type: {name} holds fractions",
            seen=_shorten(np.unique(labels)),
            allowed="class labels",
        )
    return labels.astype(np.int64)


def _positions(labels: NDArray[Any], known: NDArray[Any], name: str) -> NDArray[np.int64]:
    place = {c: i for i, c in enumerate(known.tolist())}
    distinct, inverse = np.unique(labels, return_inverse=True)
    found = np.array([place.get(label, -1) for label in distinct.tolist()], dtype=np.int64)[inverse]
    if (found < 0).any():
        row = int(np.flatnonzero(found < 0)[0])
        raise InvalidInput(
            f"{name} holds a label outside the classes",
            seen=f"{labels[row]!r} in row {row}",
            allowed=_shorten(known),
        )
    return found


def _shorten(values: NDArray[Any], most: int = 6) -> str:
    shown = ", ".join(repr(v) for v in values[:most].tolist())
    return shown + (", …" if len(values) > most else "")


def as_weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """Weights as float64, or None where all rows count the same."""
    if sample_weight is None:
        return None
    weights, _ = as_array(sample_weight, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(n, weights)
    if weights.shape != (n,):
        raise InvalidInput("sample_weight must have one weight a row", seen=f"shape {weights.shape} for {n} rows")
    weights = np.ascontiguousarray(_as_float(weights, "sample_weight"), dtype=np.float64)
    if not np.isfinite(weights).all():
        raise InvalidInput("sample_weight contains NaN or infinity", allowed="finite weights of at least 0")
    if (weights < 0).any():
        raise InvalidInput(
            "sample_weight has negative weights",
            seen=f"{weights.min():g} in row {int(weights.argmin())}",
            allowed="at least 0",
        )
    if not weights.any():
        raise InvalidInput("sample_weight is zero everywhere", allowed="at least one positive weight")
    return None if (weights == 1.0).all() else weights


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Validated probabilities: (n, K), or (n,) of one event; and each row's largest, its column, its sum of squares."""

    values: NDArray[np.floating]
    columns: tuple[Any, ...] | None
    top: NDArray[np.float64]
    top_column: NDArray[np.int64]
    squares: NDArray[np.float64]


def as_probabilities(values: Any, name: str = "y_prob", *, marginals: bool = False) -> Probabilities:
    """Check probabilities: rows on the simplex, or with ``marginals`` per-class values whose sum is free."""
    array, columns = as_matrix(values, name)
    if array.ndim == 1 or array.shape[1] == 1:
        array, columns, marginals = array.reshape(-1, 1), None, True
    top, column, squares, wrong = _core.row_tops(array, SIMPLEX_TOLERANCE, marginals, get_threads())
    if wrong >= 0:
        _refuse_row(array[wrong], wrong, marginals, name)
    return Probabilities(array[:, 0] if array.shape[1] == 1 else array, columns, top, column, squares)


def _refuse_row(row: NDArray[Any], number: int, marginals: bool, name: str) -> None:
    if np.isnan(row).any():
        raise InvalidInput(
            f"{name} contains NaN", seen=f"in row {number}", hint="drop or repair these rows; nothing is imputed"
        )
    if marginals:
        bad = row[(row < 0) | (row > 1)][0]
        raise InvalidInput(
            f"{name} holds what is no probability", seen=f"{bad} in row {number}", allowed="numbers in [0, 1]"
        )
    raise InvalidInput(
        f"{name} has a row that is not a distribution",
        seen=f"row {number} from {row.min():.6g} to {row.max():.6g}, sum {row.sum():.6g}",
        allowed=f"entries in [0, 1] that sum to 1 within {SIMPLEX_TOLERANCE:g}",
        hint="for logits take the softmax first; pass marginals=True for per-class probabilities with free sums",
    )


def refuse_swapped(y_true: Any, y_prob: Any) -> None:
    """Recognise probabilities passed where labels belong, and labels where probabilities belong."""
    labels, _ = as_array(y_true, "y_true")
    fractions = labels.dtype.kind == "f" and labels.ndim == 1 and (labels != np.floor(labels)).any()
    if not fractions and labels.ndim < 2:
        return
    others, _ = as_array(y_prob, "y_prob")
    whole = others.dtype.kind in "biuOUS" or (others.dtype.kind == "f" and (others == np.floor(others)).all())
    if whole and others.ndim == 1 and (fractions or labels.shape[1] > 1):
        raise InvalidInput(
            "y_true and y_prob look swapped",
            seen="fractions in y_true, whole numbers in y_prob",
            allowed="(y_true, y_prob): labels first, then probabilities, as in scikit-learn",
        )
