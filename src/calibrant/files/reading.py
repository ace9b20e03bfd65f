"""Reading scores and labels from a file, by what its name and its keys say."""

from __future__ import annotations

import hashlib
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ..errors import FileProblem, InvalidInput
from .array_files import read_npy, read_npz, read_safetensors, read_torch
from .assemble import Names, Piece, assemble
from .dataset import Dataset
from .tables import read_arrow, read_csv, read_parquet

__all__ = ["FORMATS", "read"]

Reader = Callable[[BinaryIO, str, Names], tuple[list[Piece], list[str]]]
_READERS: dict[str, Reader] = {
    ".npz": read_npz,
    ".npy": read_npy,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    ".feather": read_arrow,
    ".safetensors": read_safetensors,
    ".pt": read_torch,
    ".pth": read_torch,
}
FORMATS = tuple(_READERS)
_MAGIC = {b"PK\x03\x04": ".npz", b"\x93NUM": ".npy", b"PAR1": ".parquet", b"ARRO": ".arrow"}
_KINDS = {"logits": "logits", "probs": "probabilities", "probabilities": "probabilities", None: None}


def read(
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    scores: str | None = None,
    labels: str | None = None,
    embeddings: str | None = None,
    weights: str | None = None,
    groups: str | None = None,
    part: str | None = None,
    allow_torch: bool = False,
) -> Dataset:
    """Read scores, labels and what belongs to them. Nothing is ever unpickled, and no kind is guessed.

    Parameters
    ----------
    path : path
        An .npz, .npy, .csv, .tsv, .parquet, .arrow, .feather or .safetensors file, or ``"-"`` for standard input.
    kind : {"logits", "probs"}, optional
        What the scores are, where their key or column does not say it (``scores`` does not).
    scores, labels, embeddings, weights, groups : str, optional
        Keys or columns with other names than these. In tables ``scores`` may be a prefix, a pattern such as
        ``"p_*"`` or a list ``"a,b,c"``; for .npy files ``labels`` is another file.
    part : str, optional
        Which part of a split, or which of several sets of scores in one file.
    allow_torch : bool
        Read .pt files, with torch's weights-only loader.
    """
    if kind not in _KINDS:
        raise InvalidInput("kind is not known", seen=repr(kind), allowed='"logits" or "probs"')
    name, data = os.fspath(path), _bytes(path)
    suffix = _suffix(name, data)
    if suffix in (".pt", ".pth") and not allow_torch:
        raise FileProblem(
            f"{name} is a torch file, and those hold pickles",
            hint="pass --allow-torch to read it with torch's weights-only loader, or save as .npz",
        )
    names = Names(_KINDS[kind], scores, labels, embeddings, weights, groups, part)
    pieces, keys = _READERS[suffix](io.BytesIO(data), name, names)
    return assemble(name, pieces, names, keys, hashlib.sha256(data).hexdigest())


def _bytes(path: str | os.PathLike[str]) -> bytes:
    if os.fspath(path) == "-":
        return sys.stdin.buffer.read()
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise FileProblem(f"cannot read {path}", seen=error.strerror or str(error)) from error
    except MemoryError as error:
        raise FileProblem(f"{path} is larger than the memory") from error


def _suffix(name: str, data: bytes) -> str:
    if name == "-":
        return _MAGIC.get(data[:4], ".csv")
    suffix = Path(name).suffix.lower()
    if suffix in (".pkl", ".pickle", ".joblib"):
        raise FileProblem(
            f"{name} is a pickle, which could run any code; calibrant never loads one", hint="save as .npz"
        )
    if suffix not in _READERS:
        raise FileProblem(f"{name} has an ending that is not known", seen=suffix or "none", allowed=", ".join(_READERS))
    if not data:
        raise FileProblem(f"{name} is empty", seen="0 bytes")
    return suffix
