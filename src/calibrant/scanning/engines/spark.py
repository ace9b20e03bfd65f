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
from ...files.scanned.tables import empty_batch, record_batches, wanted_columns
from ...passes.batch import Batch
from ...passes.statistic import merged
from ...passes.wire import from_bytes, to_bytes
from ..writing import arrow_column, new_columns

_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class SparkSource:
    """A DataFrame and the names of its columns."""

    given: Any
    names: Names
    is_cluster = True
    n_partitions = 0  # the DataFrame API does not tell
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
        while len(found) > 1:  # two at a time: one after the other, each would be joined to all before it
            pairs = [found[i : i + 2] for i in range(0, len(found), 2)]
            found = [merged(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        return found[0] if found else None

    def answered(self, answering: Any, column: str) -> Any:
        """Return the frame, lazily, with the probabilities behind its columns."""
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
        from pyspark.sql.types import StructType

        arrow = pyarrow_module("reading a Spark DataFrame", "pyarrow")
        names = replace(self.names, every_part=self.names.part is None)
        empty = empty_batch(self.words, names, to_arrow_schema(self.given.schema))
        new = new_columns(empty, answering(empty), column, answering.names)
        kinds = arrow.schema([(name, arrow_column(values).type) for name, values in new.items()])
        fields = [*self.given.schema.fields, *from_arrow_schema(kinds).fields]
        return self.given.mapInArrow(_Applied(answering, names, column), StructType(fields))


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
        answer = self.function(record_batches(batches, f"partition {number}", self.names, _ROWS, number))
        if answer is not None:
            yield pyarrow.RecordBatch.from_pydict(
                {"part": pyarrow.array([number], pyarrow.int32()), "answer": pyarrow.array([to_bytes(answer)])}
            )


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


@dataclass(frozen=True)
class _Applied:
    """What a partition does to be answered: the old columns, and the new ones behind them."""

    answering: Any
    names: Names
    column: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for part in batches:
            for batch in record_batches(iter([part]), "a partition", self.names, max(1, part.num_rows)):
                new = new_columns(batch, self.answering(batch), self.column, self.answering.names)
                columns = [*part.columns, *map(arrow_column, new.values())]
                yield pyarrow.RecordBatch.from_arrays(columns, names=[*part.schema.names, *new])
