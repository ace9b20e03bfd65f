"""Writing probabilities: .npz, .npy, .csv, .tsv or .parquet, replaced atomically, or a table on standard output."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileProblem, MissingExtra
from .atomic import replacing
from .dataset import Dataset

__all__ = ["write_probabilities"]


def write_probabilities(path: str, data: Dataset, parts: Mapping[str, NDArray[Any]]) -> None:
    """Write probabilities, and the labels where there are some, such that `read` understands the file."""
    suffix = ".csv" if path == "-" else Path(path).suffix.lower()
    if suffix not in _WRITERS:
        raise FileProblem(f"{path} has an ending that is not known", seen=suffix or "none", allowed=", ".join(_WRITERS))
    content = _WRITERS[suffix](data, parts)
    if path == "-":
        sys.stdout.buffer.write(content)
        return
    with replacing(path) as out:
        out.write(content)


def _npz(data: Dataset, parts: Mapping[str, NDArray[Any]]) -> bytes:
    arrays: dict[str, Any] = {}
    for name, probabilities in parts.items():
        ending = f"_{name}" if name in ("val", "test", "train") else ""
        start = f"{name}_" if name and not ending else ""
        arrays[f"{start}probs{ending}"] = probabilities
        labels = data.parts[name].labels
        if labels is not None:
            arrays[f"{start}labels{ending}"] = labels.astype(str) if labels.dtype == object else labels
    if not data.plain_classes or list(data.class_names) != [str(i) for i in range(len(data.classes))]:
        arrays["classes"] = np.asarray([str(name) for name in data.class_names])
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _npy(data: Dataset, parts: Mapping[str, NDArray[Any]]) -> bytes:
    if len(parts) > 1:
        raise FileProblem(
            "an .npy file holds one part", seen=", ".join(parts), hint="choose one with --part, or write .npz"
        )
    buffer = io.BytesIO()
    np.save(buffer, next(iter(parts.values())), allow_pickle=False)
    return buffer.getvalue()


def _columns(data: Dataset, parts: Mapping[str, NDArray[Any]]) -> dict[str, list[Any]]:
    """Columns of a table: prob_<class> each, then the label, then the part where there are several."""
    stacked = np.concatenate(list(parts.values()))
    columns = {f"prob_{name}": stacked[:, i].tolist() for i, name in enumerate(data.class_names)}
    labels = [data.parts[name].labels for name in parts]
    if all(found is not None for found in labels):
        columns["label"] = [label for found in labels if found is not None for label in found.tolist()]
    if len(parts) > 1:
        columns["split"] = [name for name, p in parts.items() for _ in range(len(p))]
    return columns


def _text(delimiter: str) -> Any:
    def write(data: Dataset, parts: Mapping[str, NDArray[Any]]) -> bytes:
        columns = _columns(data, parts)
        buffer = io.StringIO()
        writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return buffer.getvalue().encode()

    return write


def _parquet(data: Dataset, parts: Mapping[str, NDArray[Any]]) -> bytes:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtra("writing .parquet needs pyarrow", hint='pip install "calibrant[parquet]"') from error
    buffer = io.BytesIO()
    parquet.write_table(arrow.table(_columns(data, parts)), buffer)
    return buffer.getvalue()


_WRITERS = {".npz": _npz, ".npy": _npy, ".csv": _text(","), ".tsv": _text("\t"), ".parquet": _parquet}
