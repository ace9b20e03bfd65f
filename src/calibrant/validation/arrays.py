"""From what users have to plain arrays: arrays of numbers and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput, InvalidType, count_of
from ..types import Array, Floats

# Rows of real probability files sum to one up to rounding of the file's writer (1.00002 in one of ours).
SIMPLEX_TOLERANCE = 1e-3
_ROUNDING = 1e-6  # several times what 1 - p in single precision may be off by, also where it was written to a file
# A number rounded to eight significant bits is off by 2⁻⁸ of itself at most, and so is a sum of such numbers. Half
# precision (2⁻¹¹) stays inside the tolerance above.
BFLOAT16_ROUNDING = 2.0**-8


# Sums of weights beyond are taken for these: see `_of_sensible_sum`.
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-20, 1e15  # in single precision too
_NO_WEIGHT = 1e-100  # a weight below is none beside any such sum, and one over its square would overflow


_DOUBLE, _SINGLE = np.dtype(np.float64), np.dtype(np.float32)  # the usual types, known without spelling out their names


class SeriesName(str):
    """The name of a Series, which arithmetic keeps: ``1 - p`` is still called p_sick."""

    __slots__ = ()


def simplex_tolerance(values: Any) -> float:
    """Return how far a row of probabilities of this type may be from one in sum."""
    kind = getattr(values, "dtype", _DOUBLE)
    usual = kind is _DOUBLE or kind is _SINGLE
    coarse = not usual and str(kind).endswith("bfloat16")
    return BFLOAT16_ROUNDING if coarse else SIMPLEX_TOLERANCE


def held_inside(array: Floats, *, above: bool = False) -> Floats:
    """Return probabilities with 0 for what rounding has made negative, and with ``above`` 1 for what it left above one.

    In single precision 1 - p is off by 1e-7; farther than 1e-6 outside nothing is mended.
    """
    slightly = (array < 0) & (array >= -_ROUNDING)
    found = np.where(slightly, array.dtype.type(0), array) if slightly.any() else array
    return np.where((found > 1) & (found <= 1 + _ROUNDING), array.dtype.type(1), found) if above else found


def as_array(values: Any, name: str) -> tuple[NDArray[Any], tuple[Any, ...] | None]:
    """Turn an array-like, a pandas or polars frame or series, or a torch tensor into a NumPy array without a copy.

    Returns the array and, for frames and series, the names of the columns. Complex numbers are refused.
    """
    array, columns = (values, None) if type(values) is np.ndarray else _read_array(values, name)
    if array.dtype.kind == "c":
        raise InvalidInput(f"Complex data not supported in {name}", seen=str(array.dtype), allowed="real numbers")
    return array, columns


def _read_array(values: Any, name: str) -> tuple[NDArray[Any], tuple[Any, ...] | None]:
    if values is None:
        raise InvalidInput(f"{name} is missing", seen="None", allowed="an array, a frame or a tensor")
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return _of_tensor(values, name), None
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise InvalidInput(
            f"{name} is a sparse matrix; dense data is required",
            seen=type(values).__name__,
            hint="call .toarray() first",
        )
    if _is_lazy(values):
        raise InvalidInput(
            f"{name} is a lazy frame: its rows are not there yet",
            seen=type(values).__name__,
            hint="call .collect() first, or give it to calibrant.scan",
        )
    if np.ma.is_masked(values):
        raise InvalidInput(f"{name} has masked entries", hint="drop or fill these rows; nothing is imputed")
    columns = column_names(values)
    try:
        copies = hasattr(values, "buffers")  # an Arrow array, whose to_numpy refuses words and truth values
        array = values.to_numpy() if hasattr(values, "to_numpy") and not copies else np.asarray(values)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise InvalidInput(
            f"{name} cannot be read as an array",
            seen=f"{type(values).__name__} ({error})"[:200],
            allowed="rows of equal length",
        ) from error
    if array.ndim == 1 and array.dtype.kind == "U" and not hasattr(values, "dtype"):
        array = _as_they_came(array, values)
    return array, columns


def _as_they_came(array: NDArray[Any], values: Any) -> NDArray[Any]:
    """Return a list in words as NumPy reads it; where it holds other things too, as what they are: NaN is no word."""
    others = any(not isinstance(value, str) for value in values)
    return np.array(values, dtype=object) if others else array


def shape_of(values: Any) -> tuple[int, ...]:
    """Return the shape that an array or a frame says it has, before it is read; none where it says no such thing."""
    try:
        shape = values.shape
    except (AttributeError, RuntimeError):  # a nested tensor
        return ()
    return shape if isinstance(shape, tuple) and all(isinstance(length, int) for length in shape) else ()


def column_names(values: Any) -> tuple[Any, ...] | None:
    """Return the names of a frame's columns; None for what has none, and for a lazy frame, which no one has read.

    A series has one, which is a `SeriesName`.
    """
    if type(values) is np.ndarray or _is_lazy(values):
        return None
    if hasattr(values, "columns"):
        return tuple(getattr(values, "column_names", values.columns))  # an Arrow table's columns are its data
    name = getattr(values, "name", None) if hasattr(values, "to_numpy") else None
    return None if name is None or np.ndim(values) != 1 else (SeriesName(name),)


def _is_lazy(values: Any) -> bool:
    return hasattr(values, "collect_schema") and hasattr(values, "collect")


def _of_tensor(values: Any, name: str) -> NDArray[Any]:
    """Return a torch tensor as an array; sparse and quantised ones are refused."""
    layout = str(getattr(values, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise InvalidInput(
            f"{name} is a sparse tensor; dense data is required", seen=layout, hint="call .to_dense() first"
        )
    try:
        tensor = values.detach().cpu()
        if hasattr(tensor, "resolve_conj"):  # lazily conjugated or negated tensors have no array before this
            tensor = tensor.resolve_conj().resolve_neg()
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    except (TypeError, RuntimeError, AttributeError) as error:
        raise InvalidInput(f"{name} is a tensor that cannot be read", seen=f"{error}"[:200]) from error


def as_float(array: NDArray[Any], name: str) -> Floats:
    """Return numbers as float32 or float64; half precision becomes float32, whole numbers float64."""
    if array.dtype.char in "fd":
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if array.dtype == np.float16 or array.dtype.name == "bfloat16":
        return array.astype(np.float32)
    if array.dtype not in (np.float32, np.float64):
        if array.dtype.kind == "O" and (missing := _missing(array)).any():
            array = np.where(missing, np.nan, array)  # which is refused by its row where numbers are looked at
        try:
            if array.dtype.kind in "mMV":
                raise TypeError("dates, durations and records are none")
            with np.errstate(over="ignore"):  # what is too large for a double is infinite, and refused as that
                array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            kind = InvalidType if isinstance(error, TypeError) else InvalidInput
            raise kind(
                f"{name} must hold numbers",
                seen=f"dtype {array.dtype} ({error})",
                allowed="float32, float64, integers",
            ) from error
    return array


def as_numbers(
    values: Any, name: str, low: float = -np.inf, high: float = np.inf, *, ndim: int | None = None, least: int = 1
) -> Array:
    """Return finite numbers of an interval in double precision: so many at least, of any shape or number of axes."""
    array = as_float(as_array(values, name)[0], name).astype(np.float64)
    inside = np.isfinite(array) & (array >= low) & (array <= high)
    if array.size < least or not inside.all() or ndim not in (None, array.ndim):
        seen = f"shape {array.shape}" if inside.all() else f"{array[~inside].flat[0]:g}"
        raise InvalidInput(
            f"{name} cannot be used",
            seen=seen,
            allowed=f"finite numbers in [{low:g}, {high:g}], {least} at least"
            + (f", in {count_of(ndim, 'dimension')}" if ndim else ""),
        )
    return array


def _missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Where pandas says that a value is not there; ``None`` and NaN are read as NaN anyway."""
    found = [type(value).__name__ in ("NAType", "NaTType") for value in array.ravel().tolist()]
    return np.asarray(found, dtype=bool).reshape(array.shape)


def as_matrix(values: Any, name: str) -> tuple[Floats, tuple[Any, ...] | None]:
    """Return a finite-shaped C-contiguous (n, d) float array, and a frame's column names."""
    array, columns = as_array(values, name)
    array = as_float(array, name)
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


def is_one_score(shape: tuple[int, ...]) -> bool:
    """Tell whether scores of this shape are one a row: the score of an event."""
    return len(shape) == 1 or shape[1] == 1


def as_weights(sample_weight: Any, n: int, *, whole: bool = True, name: str = "sample_weight") -> Array | None:
    """Weights as float64, or None where all rows count the same.

    ``whole`` says that these are all rows; of a part of them, weights of any size cannot be brought to a common scale.
    """
    if sample_weight is None:
        return None
    weights, _ = as_array(sample_weight, name)
    if weights.ndim == 0:
        weights = np.full(n, weights)
    if weights.shape != (n,):
        raise InvalidInput(f"{name} must have one weight a row", seen=f"shape {weights.shape} for {n} rows")
    weights = np.ascontiguousarray(as_float(weights, name), dtype=np.float64)
    if not np.isfinite(weights).all():
        raise InvalidInput(f"{name} contains NaN or infinity", allowed="finite weights of at least 0")
    if (weights < 0).any():
        raise InvalidInput(
            f"{name} has negative weights",
            seen=f"{weights.min():g} in row {int(weights.argmin())}",
            allowed="at least 0",
        )
    if not weights.any():
        raise InvalidInput(f"{name} is zero everywhere", allowed="at least one positive weight")
    if (weights == 1.0).all():
        return None
    total = float(weights.sum()) if weights.max() < 1e290 else np.inf
    if whole or _LEAST_WEIGHT <= total <= _MOST_WEIGHT:
        weights = weights if _LEAST_WEIGHT <= total <= _MOST_WEIGHT else _of_sensible_sum(weights)
        tiny = (weights > 0) & (weights < _NO_WEIGHT)
        return np.where(tiny, 0.0, weights) if tiny.any() else weights
    raise InvalidInput(
        f"{name} is too large or too small for rows that come in parts",
        seen=f"weights up to {weights.max():.3g}",
        allowed=f"sums between {_LEAST_WEIGHT:g} and {_MOST_WEIGHT:g}",
        hint="divide all weights by the same number",
    )


def _of_sensible_sum(weights: Array) -> Array:
    """Return weights in the same proportions whose sums and products are finite.

    A weight counts as so many rows. The largest sum is that of more rows than there ever were, the least one that of
    far fewer than one: what a map learns is no different beyond.
    """
    shares = weights / weights.max()
    total = float(weights.max()) * float(shares.sum())
    return shares * (min(max(total, _LEAST_WEIGHT), _MOST_WEIGHT) / float(shares.sum()))
