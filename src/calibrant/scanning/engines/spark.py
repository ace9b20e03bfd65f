"""Spark DataFrames, by the DataFrame API and mapInArrow alone: one row of bytes a partition and a pass."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...errors import InvalidInput
from ...files.arrow_tables import pyarrow_module
from ...files.pieces import Names
from ...files.scanned.tables import record_batches, wanted_columns
from ...passes.batch import Batch
from ...passes.wire import from_bytes, to_bytes

__all__ = ["SparkSource", "spark_source"]

_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class SparkSource:
    """A DataFrame and the names of its columns."""

    given: Any
    names: Names
    is_cluster = True
    words = "the Spark DataFrame"

    def head(self) -> None:
        """Return nothing: only a pass shows what comes."""

    def reduce(self, function: Callable[[Iterable[Batch]], Any]) -> Any:
        """Make one pass: every partition answers with one row of bytes, and these merge in the order of partitions."""
        arrow = pyarrow_module("reading a Spark DataFrame", "pyarrow")
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self.given.schema)
        columns = wanted_columns(self.words, schema.names, self.names, arrow.schema(schema))
        frame = self.given.select(*[f"`{name}`" for name in columns])
        rows = frame.mapInArrow(_Task(function, self.names), "part int, answer binary").collect()
        found = [from_bytes(bytes(row["answer"])) for row in sorted(rows, key=lambda row: row["part"])]
        total = None
        for part in found:
            total = part if total is None else total + part
        return total


@dataclass(frozen=True)
class _Task:
    """What a partition does in a pass."""

    function: Callable[[Iterable[Batch]], Any]
    names: Names

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow
        from pyspark import TaskContext

        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        answer = self.function(_batches(batches, number, self.names))
        if answer is not None:
            yield pyarrow.RecordBatch.from_pydict(
                {"part": pyarrow.array([number], pyarrow.int32()), "answer": pyarrow.array([to_bytes(answer)])}
            )


def _batches(batches: Iterator[Any], number: int, names: Names) -> Iterator[Batch]:
    for batch in record_batches(batches, f"partition {number}", names, _ROWS):
        yield replace(batch, origin=replace(batch.origin, part=number))


def spark_source(given: Any, names: Names, beside: Mapping[str, Any]) -> SparkSource:
    """Return the source of a DataFrame."""
    if beside:
        raise InvalidInput("the labels of a Spark DataFrame are a column of it", hint='name it: label="label"')
    _work_by_this_python(given)
    return SparkSource(given, names)


def _work_by_this_python(frame: Any) -> None:
    """Let the workers of a local session run the interpreter that has calibrant, not any python3 on the path."""
    context = None if "connect" in type(frame).__module__ else frame.sparkSession.sparkContext
    if context is not None and context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


def answered(source: SparkSource, answer: Callable[[Batch], Any], column: str) -> Any:
    """Return the frame with one more column: the probabilities as a list."""
    from pyspark.sql.types import ArrayType, DoubleType, StructField, StructType

    fields = [*source.given.schema.fields, StructField(column, ArrayType(DoubleType()), True)]
    return source.given.mapInArrow(_Applied(answer, source.names, column), StructType(fields))


@dataclass(frozen=True)
class _Applied:
    answer: Callable[[Batch], Any]
    names: Names
    column: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import numpy
        import pyarrow

        for part in batches:
            (batch,) = list(record_batches(iter([part]), "a partition", self.names, max(1, part.num_rows))) or [None]
            if batch is None:
                continue
            p = numpy.asarray(self.answer(batch), dtype=numpy.float64)
            flat, ends = (
                pyarrow.array(p.ravel()),
                pyarrow.array(numpy.arange(len(p) + 1, dtype=numpy.int32) * p.shape[1]),
            )
            lists = pyarrow.ListArray.from_arrays(ends, flat)
            yield pyarrow.RecordBatch.from_arrays([*part.columns, lists], names=[*part.schema.names, self.column])
