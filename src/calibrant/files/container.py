"""The file itself: safetensors, with one JSON document and a checksum in its header."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as unpack_tensors
from safetensors.numpy import save as pack_tensors

from ..errors import FileProblem

_MOST_HEADER = 100_000_000


def pack(document: dict[str, Any], tensors: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of a file with this document and these tensors."""
    text = json.dumps(document, allow_nan=False)
    return pack_tensors(dict(tensors), metadata={"calibrant": text, "sha256": _digest(text, tensors)})


def unpack(data: bytes, path: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the document and the tensors of a file; ``path`` is for errors."""
    metadata = _metadata(data, path)
    try:
        tensors = unpack_tensors(data)
        if metadata.get("sha256") != _digest(metadata["calibrant"], tensors):
            raise _damaged(path, "the checksum does not match the contents")
        document = json.loads(metadata["calibrant"])
    except (SafetensorError, ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, FileProblem):
            raise
        raise _damaged(path, str(error)) from error
    if not isinstance(document, dict):
        raise _damaged(path, "its header is no object")
    return document, tensors


def _digest(text: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "replace"))
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _metadata(data: bytes, path: str) -> dict[str, str]:
    if len(data) < 8:
        raise _damaged(path, f"{len(data)} bytes")
    (length,) = struct.unpack("<Q", data[:8])
    if length > min(_MOST_HEADER, len(data) - 8):
        if _begins_like_a_pickle(data):
            raise FileProblem(
                f"{path} is a pickle, which could run any code; calibrant never loads one",
                hint="fit the map again and save it with .save()",
            )
        raise _damaged(path, "it ends before its header does" if length < _MOST_HEADER else "it has no header")
    try:
        header = json.loads(data[8 : 8 + length])
        metadata = header["__metadata__"]
        metadata["calibrant"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(path, "it has no calibrant header") from error
    return metadata


def _begins_like_a_pickle(data: bytes) -> bool:
    """Tell by the first bytes, of a file that has no header: a header of 640 bytes begins with the same two."""
    return data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")


def _damaged(path: str, seen: str) -> FileProblem:
    return FileProblem(
        f"{path} is not a saved calibrator, or is damaged", seen=seen[:200], hint="such files are written by .save()"
    )
