"""Dask arrays and DataFrames: partitions stay where they are, and statistics merge in a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import InvalidInput
from ...files.arrow_tables import pyarrow_module
from ...files.pieces import Names
from ...files.scanned.tables import empty_batch, record_batches
from ...passes.batch import Batch, Origin
from ...passes.statistic import merged
from ..writing import new_columns


@dataclass(frozen=True, eq=False)
class DaskSource:
    """Partitions as delayed values, each with what turns it into batches."""

    given: Any
    partitions: list[Any]
    batches: Callable[[Any, int], Iterator[Batch]]
    is_cluster = True
    words = "the Dask collection"

    @property
    def n_partitions(self) -> int:
        """How many there are."""
        return len(self.partitions)

    def head(self) -> None:
        """Return nothing: only a pass shows what comes."""

    def reduce(self, function: Callable[[Iterable[Batch]], Any]) -> Any:
        """Make one pass: the function on every partition, where it is, and what they give merged two at a time."""
        from dask.delayed import delayed

        found = [
            delayed(_one, pure=False)(function, self.batches, partition, number)
            for number, partition in enumerate(self.partitions)
        ]
        while len(found) > 1:
            pairs = [found[i : i + 2] for i in range(0, len(found), 2)]
            found = [delayed(merged, pure=False)(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        return found[0].compute() if found else None

    def answered(self, answering: Any, column: str) -> Any:
        """Return a lazy array of probabilities, or the frame, lazily, with them behind its columns."""
        if hasattr(self.given, "map_blocks"):
            return lazily(
                _OfBlock(answering), self.given, None if self.given.ndim == 1 else len(answering.maps[-1].classes_)
            )
        assert isinstance(self.batches, _FrameBatches)
        names = replace(self.batches.names, every_part=self.batches.names.part is None)
        new = _WithColumns(answering, _FrameBatches(names, self.batches.bytes_a_batch), column)
        return self.given.map_partitions(new, meta=new(self.given._meta))


def _one(function: Callable[[Iterable[Batch]], Any], batches: Any, partition: Any, number: int) -> Any:
    return function(batches(partition, number))


def dask_source(given: Any, names: Names, beside: Mapping[str, Any], bytes_a_batch: int) -> DaskSource:
    """Return the source of a Dask array, with labels and weights beside it, or of a DataFrame."""
    if not hasattr(given, "map_blocks"):
        return DaskSource(given, list(given.to_delayed()), _FrameBatches(names, bytes_a_batch))
    if "labels" not in beside:
        raise InvalidInput("a Dask array needs its labels", hint="pass label=…, an array of as many rows")
    scores = given.rechunk({1: -1}) if given.ndim == 2 else given
    rows = scores.chunks[0]
    aligned = [_aligned("scores", scores, rows), *(_aligned(*column, rows) for column in beside.items())]
    partitions = [list(parts) for parts in zip(*aligned, strict=True)]
    return DaskSource(given, partitions, _ArrayBatches(tuple(beside)))


def _aligned(role: str, column: Any, rows: tuple[int, ...]) -> list[Any]:
    """Return a column in as many parts as the scores have, of as many rows each."""
    known = not any(np.isnan(rows))
    given = len(column) if not hasattr(column, "to_delayed") else getattr(column, "shape", (np.nan,))[0]
    if known and isinstance(given, (int, float)) and not np.isnan(given) and given != sum(rows):
        raise InvalidInput(f"scores and {role} have inconsistent numbers of rows", seen=f"{sum(rows)}, {given}")
    if not hasattr(column, "to_delayed") and known:
        return list(np.split(np.asarray(column), np.cumsum(rows)[:-1]))
    if hasattr(column, "chunks") and known and not np.isnan(given):
        column = column.rechunk({0: rows})
    parts = list(np.ravel(column.to_delayed())) if hasattr(column, "to_delayed") else []
    if len(parts) != len(rows):
        raise InvalidInput(
            f"the partitions of scores and {role} are not the same, and Dask does not know how many rows they have",
            seen=f"{len(rows)} and {len(parts)}",
            hint="call compute_chunk_sizes() on the arrays",
        )
    return parts


@dataclass(frozen=True)
class _ArrayBatches:
    roles: tuple[str, ...]

    def __call__(self, partition: list[Any], number: int) -> Iterator[Batch]:
        scores, *others = partition
        if len(scores):
            origin = Origin(f"partition {number}", 0, part=number)
            yield Batch(np.asarray(scores), **dict(zip(self.roles, others, strict=True)), origin=origin)


@dataclass(frozen=True)
class _FrameBatches:
    names: Names
    bytes_a_batch: int

    def with_empty(self, partition: Any) -> list[Batch]:
        """Return the batches of a partition; one without rows where it has none."""
        if len(partition):
            return list(self(partition, 0))
        arrow = pyarrow_module("reading a Dask DataFrame", "pyarrow")
        schema = arrow.Schema.from_pandas(partition, preserve_index=False)
        return [empty_batch("the Dask DataFrame", self.names, schema)]

    def __call__(self, partition: Any, number: int) -> Iterator[Batch]:
        arrow = pyarrow_module("reading a Dask DataFrame", "pyarrow")
        table = arrow.Table.from_pandas(partition, preserve_index=False)
        parts = table.combine_chunks().to_batches()
        yield from record_batches(iter(parts), f"partition {number}", self.names, 1 << 16, number)


@dataclass(frozen=True)
class _OfBlock:
    answering: Callable[[Batch], Any]

    def __call__(self, scores: Any) -> Any:
        return self.answering(Batch(scores))


@dataclass(frozen=True)
class _WithColumns:
    """A partition, a pandas frame, with the new columns behind its own."""

    answering: Any
    batches: _FrameBatches
    column: str

    def __call__(self, partition: Any) -> Any:
        parts = [
            new_columns(batch, self.answering(batch), self.column, self.answering.names)
            for batch in self.batches.with_empty(partition)
        ]
        new = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return partition.assign(**{name: list(p) if p.ndim == 2 else p for name, p in new.items()})


def lazily(answer: Callable[[Any], Any], scores: Any, classes: int | None) -> Any:
    """Return the answers to a Dask array as a lazy Dask array; one number a row where ``classes`` is None."""
    whole = scores.rechunk({1: -1}) if scores.ndim == 2 else scores
    dtype = np.float32 if whole.dtype in (np.float32, np.float16) else np.float64
    if classes is None:
        return whole.map_blocks(answer, dtype=dtype, meta=np.empty(0, dtype))
    new = {"new_axis": 1} if whole.ndim == 1 else {}
    return whole.map_blocks(
        answer, dtype=dtype, chunks=(whole.chunks[0], (classes,)), meta=np.empty((0, 0), dtype), **new
    )
