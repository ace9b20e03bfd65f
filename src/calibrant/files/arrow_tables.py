"""Tables that pyarrow reads: .parquet, .arrow and .feather."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import FileProblem, InvalidInput, MissingExtra
from .pieces import Found, Names
from .tables import Table, as_lists, table_pieces

__all__ = ["pyarrow_module", "read_arrow", "read_parquet"]


def pyarrow_module(what: str, module: str) -> Any:
    """Import a module of pyarrow, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(f"{what} needs pyarrow", hint='pip install "calibrant[parquet]"') from error


def read_parquet(file: BinaryIO, path: str, names: Names) -> Found:
    """Read a Parquet file; needs the extra ``parquet``."""
    return _read(path, names, lambda: pyarrow_module(f"reading {path}", "pyarrow.parquet").read_table(file))


def read_arrow(file: BinaryIO, path: str, names: Names) -> Found:
    """Read an Arrow (Feather) file or stream; needs the extra ``parquet``."""

    def load() -> Any:
        ipc = pyarrow_module(f"reading {path}", "pyarrow.ipc")
        data = file.read()
        reader = ipc.open_file(data) if data[:6] == b"ARROW1" else ipc.open_stream(data)
        return reader.read_all()

    return _read(path, names, load)


def _read(path: str, names: Names, load: Callable[[], Any]) -> Found:
    try:
        table = load()
        table.validate(full=True)  # what a damaged file says of its own memory is checked before it is followed
    except MissingExtra:
        raise
    except Exception as error:  # pyarrow's errors are of many types, all of them mean the file
        raise FileProblem(f"{path} is damaged, or not what its name says", seen=str(error)[:200]) from error

    def values(column: str) -> NDArray[Any]:
        found = table.column(column)
        if found.null_count:
            row = next(i for i, valid in enumerate(found.is_valid().to_pylist()) if not valid)
            raise InvalidInput(f"{path}: column {column} has missing values", seen=f"row {row}")
        try:
            return as_lists(path, column, found.to_pylist()) if _is_nested(found.type) else found.to_numpy()
        except UnicodeDecodeError as error:
            raise FileProblem(f"{path}: column {column} holds text that is none", seen=f"{error}"[:200]) from error

    def numbers(columns: Sequence[str]) -> NDArray[Any]:
        blocks = [values(column) for column in columns]
        return blocks[0] if len(blocks) == 1 else np.column_stack(blocks)

    def items(column: str) -> list[Any]:
        return table.column(column).to_pylist()

    return table_pieces(Table(path, table.column_names, numbers, values, table, items=items), names)


def _is_nested(kind: Any) -> bool:
    return str(kind).startswith(("list", "fixed_size_list", "large_list"))
