"""What users have, as sources of batches: functions that start them, frames, relations, streams of Arrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import numpy as np

from ..errors import InvalidInput
from ..files.arrow_tables import pyarrow_module
from ..files.pieces import Names, listed, named_pieces
from ..files.roles import SCORE_ROLES
from ..files.scanned import file_source
from ..files.scanned.tables import record_batches
from ..passes.batch import Batch, Origin, rows_in
from ..validation import as_array
from .looking import Source
from .spilling import spilled

_NAMED_BY = {"scores": "scores", "labels": "label", "weights": "weight", "groups": "group"}  # arguments of `scan`
_AGAIN = "scan needs something that starts the batches anew, as a fit reads them more than once"


@dataclass(frozen=True, eq=False)
class Stream:
    """Batches that a function starts anew."""

    words: str
    start: Callable[[], Iterable[Batch]]
    is_cluster = False
    n_partitions = 0

    def reduce(self, function: Callable[[Iterable[Batch]], Any]) -> Any:
        """Make one pass."""
        return function(self.start())

    def head(self) -> Batch | None:
        """Return nothing: only a pass shows what comes."""
        return None


def source_of(given: Any, names: Names, beside: Mapping[str, Any], bytes_a_batch: int, spill: Any) -> Source:
    """Return the source of what a user passed to `scan`.

    ``names`` are the columns that were named, ``beside`` arrays that were given as such: labels, weights, groups.
    """
    if isinstance(given, (str, os.PathLike)) or (isinstance(given, (list, tuple)) and _are_paths(given)):
        return file_source(given, names, bytes_a_batch, spill)
    given = cast("Any", given)
    room = type(given).__module__.partition(".")[0]
    if room in ("dask", "dask_expr"):
        return import_module(".engines.dask", __package__).dask_source(given, names, beside, bytes_a_batch)
    if room == "pyspark":
        return import_module(".engines.spark", __package__).spark_source(given, names, beside)
    if callable(given) and not hasattr(given, "__arrow_c_stream__"):
        _refuse_beside(beside)
        begin = cast("Callable[[], Iterable[Any]]", given)
        return Stream("the function", lambda: _of_tuples(_begun(begin), names))
    arrow = _arrow_start(given, bytes_a_batch)
    if arrow is not None:
        rows = max(1, bytes_a_batch // 512)
        return Stream(type(given).__name__, lambda: record_batches(arrow(), type(given).__name__, names, rows))
    if isinstance(given, np.ndarray) or hasattr(given, "__array__"):
        return _arrays(given, beside, bytes_a_batch)
    if _is_spent_by_reading(given):
        if spill is None:
            raise InvalidInput(
                _AGAIN,
                seen=f"{type(given).__name__}, which can be read once",
                hint="pass a generator function or lambda: loader, or spill=True, which writes it to a file of its own",
            )
        return spilled(given, lambda batches: _of_tuples(batches, names), names, bytes_a_batch, spill)
    if hasattr(given, "__iter__"):
        again = cast("Iterable[Any]", given)
        return Stream(type(given).__name__, lambda: _of_tuples(again, names))
    raise InvalidInput(
        "scan does not know this source",
        seen=type(given).__name__,
        allowed="paths, a function that starts batches, an Arrow, Dask or Spark frame, a polars LazyFrame, a relation",
    )


def _are_paths(given: Any) -> bool:
    return len(given) > 0 and all(isinstance(one, (str, os.PathLike)) for one in given)


def _is_spent_by_reading(given: Any) -> bool:
    one_shot = hasattr(given, "read_next_batch")  # a reader of Arrow batches
    return one_shot or (hasattr(given, "__next__") and hasattr(given, "__iter__"))


def _refuse_beside(beside: Mapping[str, Any]) -> None:
    if beside:
        name = next(iter(beside))
        raise InvalidInput(f"{name} was given as an array beside batches, which bring their own")


# Batches of Python objects --------------------------------------------------------------------------------------------


def _begun(begin: Callable[[], Iterable[Any]]) -> Iterable[Any]:
    batches = begin()
    if not hasattr(batches, "__iter__"):
        raise InvalidInput(
            "the function of a scan must return batches", seen=type(batches).__name__, hint="a generator function does"
        )
    return batches


def _of_tuples(batches: Iterable[Any], names: Names) -> Iterator[Batch]:
    """Yield batches from tuples (scores, labels) or (scores, labels, weights), from mappings, or from frames."""
    first = 0
    for number, batch in enumerate(batches):
        found = _of_tuple(batch, number, first, names)
        first += _count(found.scores if found.labels is None else found.labels)
        yield found


def _count(rows: Any) -> int:
    try:
        return len(rows)
    except TypeError:  # one number, or what is refused when it is read
        return 1


def _of_tuple(batch: Any, number: int, first: int, names: Names) -> Batch:
    origin = Origin(f"batch {number}", 0)
    if isinstance(batch, Mapping):
        return _of_mapping(batch, origin, names)
    if hasattr(batch, "__arrow_c_stream__") or hasattr(batch, "__arrow_c_array__"):
        arrow = pyarrow_module("reading batches of frames", "pyarrow")
        table = _read_arrow(lambda: arrow.table(_called_by_text(batch)), batch)
        found = list(record_batches(iter([table.combine_chunks()]), origin.name, names, max(1, table.num_rows)))
        return found[0] if found else Batch(np.zeros((0, 1)), np.zeros(0), origin=origin)
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
        raise InvalidInput(
            f"batch {number} of the scan is not (scores, labels) or (scores, labels, weights)",
            seen=type(batch).__name__ if not isinstance(batch, (tuple, list)) else f"{len(batch)} parts",
        )
    told = [f"{word}={getattr(names, role)!r}" for role, word in _NAMED_BY.items() if getattr(names, role) is not None]
    if told:
        raise InvalidInput(
            f"batch {number} of the scan is a {type(batch).__name__}, whose parts have no names",
            seen=", ".join(told),
            hint="leave that out, or yield mappings or frames",
        )
    return Batch(batch[0], batch[1], batch[2] if len(batch) == 3 else None, origin=origin)


def _of_mapping(batch: Mapping[str, Any], origin: Origin, names: Names) -> Batch:
    """Return a batch from named arrays: what the user named counts, then what the names say."""
    keys = {str(key): key for key in batch}
    chosen: dict[str, str] = {}
    for key, (said, part) in named_pieces(origin.name, list(keys), names).items():
        role = "scores" if said in SCORE_ROLES else said
        if part not in ("", names.part):
            continue
        if role in chosen:
            raise InvalidInput(
                f"{origin.name} of the scan has several {role}",
                seen=listed([chosen[role], key]),
                hint=f"name the one: {_NAMED_BY.get(role, role)}=…",
            )
        chosen[role] = key
    if "scores" not in chosen:
        raise InvalidInput(
            f"{origin.name} of the scan has no scores", seen=listed(list(keys)), hint="name the key: scores=…"
        )
    return Batch(origin=origin, **{role: batch[keys[chosen[role]]] for role in _NAMED_BY if role in chosen})


# Arrays ---------------------------------------------------------------------------------------------------------------


def _arrays(given: Any, beside: Mapping[str, Any], bytes_a_batch: int) -> Stream:
    """Return arrays, mapped from a file or in memory, as a stream of slices."""
    scores = given if isinstance(given, np.ndarray) else as_array(given, "scores")[0]
    if scores.ndim == 0:
        raise InvalidInput("scan does not know this source", seen=type(given).__name__)
    rows = rows_in(bytes_a_batch, scores[:1])
    beside = {role: _without_torch(values, role) for role, values in beside.items()}
    for role, values in beside.items():
        if _count(values) != len(scores):
            raise InvalidInput(
                f"scores and {role} have inconsistent numbers of rows", seen=f"{len(scores)}, {_count(values)}"
            )

    def start() -> Iterator[Batch]:
        for first in range(0, len(scores), rows):
            some = slice(first, first + rows)
            own = {role: values[some] for role, values in beside.items()}
            yield Batch(scores[some], **own, origin=Origin("", first))

    return Stream("the array", start)


def _without_torch(values: Any, role: str) -> Any:
    """Return an array of what torch holds: a sparse tensor is refused in words, and cannot be cut into slices."""
    return as_array(values, role)[0] if type(values).__module__.partition(".")[0] == "torch" else values


# Arrow ----------------------------------------------------------------------------------------------------------------


def _arrow_start(given: Any, bytes_a_batch: int) -> Callable[[], Iterator[Any]] | None:
    """Return what starts the record batches of a source anew; None where it has none, or can do so once only."""
    rows = max(1, bytes_a_batch // 512)
    if hasattr(given, "collect_batches"):  # a polars LazyFrame
        return lambda: _of_frames(given.collect_batches(chunk_size=rows, maintain_order=True))
    if hasattr(given, "to_arrow_reader"):  # a DuckDB relation, which runs its query anew
        return lambda: iter(given.to_arrow_reader(rows))
    if hasattr(given, "fetch_arrow_reader"):
        return lambda: iter(given.fetch_arrow_reader(rows))
    if hasattr(given, "to_batches") and hasattr(given, "schema"):  # a pyarrow dataset or table
        dataset = hasattr(given, "scanner")
        return lambda: iter(given.to_batches(batch_size=rows) if dataset else given.to_batches(max_chunksize=rows))
    if hasattr(given, "__arrow_c_stream__") and not _is_spent_by_reading(given):
        reader = pyarrow_module("reading a stream", "pyarrow").RecordBatchReader
        return lambda: iter(_read_arrow(lambda: reader.from_stream(_called_by_text(given)), given))
    return None


def _read_arrow(read: Callable[[], Any], given: Any) -> Any:
    """Read what calls itself Arrow; a single column has no names, and is refused."""
    try:
        return read()
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{type(given).__name__} is no table of columns", seen=str(error)[:120], hint="pass a frame"
        ) from error


def _called_by_text(frame: Any) -> Any:
    """Return a frame whose columns are called by text, as Arrow's are: of names of several types pandas warns."""
    names = getattr(frame, "columns", ())
    if not hasattr(frame, "set_axis") or all(isinstance(name, str) for name in names):
        return frame
    return frame.set_axis([str(name) for name in names], axis=1)


def _of_frames(frames: Iterable[Any]) -> Iterator[Any]:
    for frame in frames:
        yield from frame.to_arrow().to_batches()
