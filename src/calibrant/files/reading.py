"""Reading scores and labels from a file, by what its name and its keys say."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import FileProblem, InvalidInput
from ..parameters import is_one_of
from .array_files import read_npy, read_npz, read_safetensors, read_torch
from .arrow_tables import read_arrow, read_parquet
from .assemble import assemble
from .atomic import check_path, read_bytes
from .dataset import Dataset
from .pieces import Found, Names
from .text_tables import read_csv, read_jsonl

Reader = Callable[[BinaryIO, str, Names], Found]
_READERS: dict[str, Reader] = {
    ".npz": read_npz,
    ".npy": read_npy,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
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
    clusters: str | None = None,
    part: str | None = None,
    percent: bool = False,
    event: str | None = None,
    unlabelled: bool = False,
    every_part: bool = False,
    several: bool = False,
    known: tuple[Any, ...] = (),
    whose: str = "the map",
    allow_torch: bool = False,
) -> Dataset:
    """Read scores, labels and what belongs to them. Nothing is ever unpickled, and no kind is guessed.

    Parameters
    ----------
    path : path
        An .npz, .npy, .csv, .tsv, .jsonl, .parquet, .arrow, .feather or .safetensors file, any of them with .gz behind,
        or ``"-"`` for standard input.
    kind : {"logits", "probs"}, optional
        What the scores are, where their key or column does not say it (``scores`` does not).
    scores, labels, embeddings, weights, groups, clusters : str, optional
        Keys or columns with other names than these. In tables ``scores`` may be a prefix, a pattern such as
        ``"p_*"`` or a list ``"a,b,c"``; for .npy files ``labels`` is another file.
    part : str, optional
        Which part of a split, or which of several sets of scores in one file.
    percent : bool
        Probabilities are written as percentages; a percent sign in the cells of a text says so too.
    event : str, optional
        The label whose probability a single column holds; else the second of two, in order.
    unlabelled : bool
        Labels may be missing from some rows of a table; then there are none.
    every_part : bool
        Return a training part beside validation and test parts too.
    several : bool
        Rows have several labels: a column of outcomes (0, 1, or empty where not known) for each of the scores.
    known : tuple
        The classes of a fitted map, where the file has scores for it: with another number of columns it is refused, and
        where nothing in it names the classes, and its labels are among these, they are these.
    whose : str
        What these are the classes of.
    allow_torch : bool
        Read .pt files, with torch's weights-only loader.
    """
    check_path(path)
    if not is_one_of(kind, _KINDS):
        raise InvalidInput("kind is not known", seen=repr(kind), allowed='"logits" or "probs"')
    name = os.fsdecode(path)
    suffix = None if name == "-" else _suffix(name)
    data = stream_bytes(sys.stdin.buffer) if suffix is None else read_bytes(name, pipes=True)
    digest = hashlib.sha256(data).hexdigest()
    data = _unpacked(name, data)
    suffix = suffix or ending_by_content(data)
    if not data and name != "-":
        raise FileProblem(f"{name} is empty", seen="0 bytes")
    if suffix in (".pt", ".pth") and not allow_torch:
        raise FileProblem(
            f"{name} is a torch file, and those hold pickles",
            hint="pass --allow-torch to read it with torch's weights-only loader, or save as .npz",
        )
    names = Names(
        _KINDS[kind],
        scores,
        labels,
        embeddings,
        weights,
        groups,
        clusters,
        part,
        percent,
        every_part,
        event,
        unlabelled,
        several,
        known,
        whose,
    )
    for role in ("scores", "labels", "embeddings", "weights", "groups", "clusters", "part", "event"):
        if not isinstance(given := getattr(names, role), (str, os.PathLike, type(None))):
            raise InvalidInput(f"{role} is no name", seen=repr(given)[:80], allowed="text")
    return assemble(name, _READERS[suffix](io.BytesIO(data), name, names), names, digest)


def ending(path: str) -> str:
    """Return how the name of a file ends, without ``.gz`` behind: ``.csv`` of ``a.csv.gz``."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return "".join(suffixes[-2:-1] if suffixes[-1:] == [".gz"] else suffixes[-1:])


def ending_by_content(data: bytes) -> str:
    """Return the ending of a file that begins with these bytes, where it has no name."""
    if data[:2] == b"\x1f\x8b":
        with contextlib.suppress(OSError, EOFError, zlib.error):
            return ending_by_content(zlib.decompressobj(31).decompress(data, 1 << 12)) + ".gz"
    return ".jsonl" if data.lstrip()[:1] == b"{" else _MAGIC.get(data[:4], ".csv")


def arriving(stream: Any) -> Iterator[bytes]:
    """Yield the bytes of a stream as they come: a plain read may hear a Ctrl-C only when more of them come."""
    return iter(lambda: stream.read1(1 << 20), b"")


def stream_bytes(stream: Any, most: int = sys.maxsize) -> bytes:
    """Return the bytes of a stream: at least ``most``, or all."""
    found = io.BytesIO()
    for piece in arriving(stream):
        if found.write(piece) and found.tell() >= most:
            break
    return found.getvalue()


def _unpacked(name: str, data: bytes) -> bytes:
    if not name.lower().endswith(".gz") and not (name == "-" and data[:2] == b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise FileProblem(f"{name} is not a .gz file, or is damaged", seen=str(error)[:120]) from error
    except MemoryError as error:
        raise FileProblem(f"{name} holds more than the memory") from error


def _suffix(name: str) -> str:
    suffix = ending(name)
    if suffix in (".pkl", ".pickle", ".joblib"):
        raise FileProblem(
            f"{name} is a pickle, which could run any code; calibrant never loads one", hint="save as .npz"
        )
    if suffix not in _READERS:
        raise FileProblem(f"{name} has an ending that is not known", seen=suffix or "none", allowed=", ".join(_READERS))
    return suffix
