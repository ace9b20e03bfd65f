"""Tables that pyarrow reads: .parquet, .arrow and .feather."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import FileProblem, InvalidInput, blamed, import_extra
from .pieces import Found, Names
from .tables import Table, table_pieces


def pyarrow_module(what: str, module: str) -> Any:
    """Import a module of pyarrow, or say which extra brings it."""
    return import_extra(module, "parquet", what)


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
    with blamed(f"{path} is damaged, or not what its name says", Exception):  # pyarrow's are of many types
        table = load()
        table.validate(full=True)  # what a damaged file says of its own memory is checked before it is followed
    return table_pieces(arrow_table(path, table), names)


def arrow_table(path: str, part: Any, first: int = 0) -> Table:
    """Return Arrow's columns, whole or a batch of rows from the row ``first`` on, as a table."""

    def values(column: str) -> NDArray[Any]:
        if part.schema.names.count(column) > 1:
            raise InvalidInput(f"{path} has two columns of one name", seen=repr(column))
        found = part.column(column)
        found = found.combine_chunks() if hasattr(found, "combine_chunks") else found
        if found.null_count:
            row = int(np.argmin(found.is_valid().to_numpy(zero_copy_only=False)))
            raise InvalidInput(f"{path}: column {column} has missing values", seen=f"row {first + row}")
        try:
            return _matrix(path, column, found, first) if _is_list(found.type) else _plain(found)
        except UnicodeDecodeError as error:
            raise FileProblem(f"{path}: column {column} holds text that is none", seen=f"{error}"[:200]) from error
        except NotImplementedError as error:  # pyarrow's is one
            raise InvalidInput(f"{path}: column {column} cannot be read", seen=f"type {found.type}"[:200]) from error

    def items(column: str) -> list[Any]:
        return part.column(column).to_pylist()

    return Table(path, list(part.schema.names), values, part, items=items)


def _is_list(kind: Any) -> bool:
    return str(kind).startswith(("list", "fixed_size_list", "large_list"))


def _plain(column: Any) -> NDArray[Any]:
    if str(column.type).startswith("dictionary"):
        column = column.dictionary_decode()
    return column.to_numpy(zero_copy_only=False)


def _matrix(path: str, column: str, lists: Any, first: int) -> NDArray[Any]:
    """Return lists of one length as a matrix, without a Python object a row."""
    inside = lists.flatten()
    if inside.null_count:
        raise InvalidInput(f"{path}: column {column} has missing values inside its lists", seen=f"from row {first} on")
    flat = inside.to_numpy(zero_copy_only=False)
    if not len(lists):
        return flat.reshape(0, getattr(lists.type, "list_size", 1))
    lengths = np.asarray(lists.value_lengths())
    if (lengths != lengths[0]).any():
        row = int(np.argmax(lengths != lengths[0]))
        raise InvalidInput(f"{path}: column {column} has rows of different lengths", seen=f"row {first + row}")
    if flat.dtype.kind not in "fiub":
        raise InvalidInput(f"{path}: column {column} must hold lists of numbers", seen=f"type {lists.type}")
    return flat.reshape(len(lists), -1)
