"""Files of named arrays: .npz, .npy, .safetensors and, by opt-in, .pt. None of them is ever unpickled."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from ..errors import FileProblem, InvalidInput, MissingExtra, blamed
from ..validation import BFLOAT16_ROUNDING, as_array
from .atomic import read_bytes
from .pieces import Found, Names, Piece, named_pieces
from .roles import role_of


def read_npz(file: BinaryIO, path: str, names: Names) -> Found:
    """Read the keys of an .npz file that play a role."""
    with blamed(f"{path} is not an .npz file, or is damaged", Exception):  # names that are no text, and much else
        archive = zipfile.ZipFile(file)
        keys = [name[:-4] for name in archive.namelist() if name.endswith(".npy")]

    def load(key: str) -> NDArray[Any]:
        with blamed(f"{path}: {key} cannot be unpacked", Exception):  # encrypted, or not where it is said to be
            member = archive.open(f"{key}.npy")
        with member:
            return _read_array(member, f"{path}: {key}")

    return _pieces(path, keys, load, names)


def _read_array(file: Any, what: str) -> NDArray[Any]:
    try:
        return npy_format.read_array(file, allow_pickle=False)
    except MemoryError as error:
        raise FileProblem(f"{what} says it is larger than the memory", seen=str(error)) from error
    except Exception as error:  # zlib, struct, token and many other errors: all mean a damaged or a foreign file
        if "allow_pickle" in str(error):
            raise FileProblem(
                f"{what} holds Python objects (a pickle), which could run any code; calibrant never loads them",
                hint="save numbers or strings: array.astype(float) or array.astype(str)",
            ) from error
        seen = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise FileProblem(f"{what} is not an array, or is damaged", seen=seen[:200]) from error


def _pieces(
    path: str, keys: list[str], load: Callable[[str], NDArray[Any]], names: Names, coarse: set[str] | None = None
) -> Found:
    """Load the keys that play a role; ``coarse`` are those in bfloat16."""
    pieces = []
    for key, (role, part) in named_pieces(path, keys, names).items():
        rounding = BFLOAT16_ROUNDING if key in (coarse or ()) else 0.0
        pieces.append(Piece(key, role, part, load(key), rounding=rounding))
    return Found(pieces, keys)


def read_npy(file: BinaryIO, path: str, names: Names) -> Found:
    """Read scores from one .npy file, and the labels from the one that is named; no other file is looked at."""
    stem = Path(path).stem
    said = role_of(stem)
    if said is not None and said[0] == "labels" and names.scores is None:
        raise InvalidInput(f"{path} holds labels, not scores", hint="pass the file of scores; labels go to --labels")
    role, part = said if said is not None else ("scores", "")
    pieces = [Piece(Path(path).name, role if names.scores is None else "scores", part, _read_array(file, path))]
    if names.labels is not None:
        labels = read_bytes(names.labels, pipes=True)
        array = _read_array(io.BytesIO(labels), str(names.labels))
        pieces.append(Piece(Path(names.labels).name, "labels", part, array))
    return Found(pieces, [piece.key for piece in pieces])


def read_safetensors(file: BinaryIO, path: str, names: Names) -> Found:
    """Read the tensors of a .safetensors file that play a role."""
    from safetensors import SafetensorError, deserialize

    damage = (SafetensorError, ValueError, TypeError, KeyError, OverflowError)
    with blamed(f"{path} is not a .safetensors file, or is damaged", *damage):
        tensors = dict(deserialize(file.read()))

    def load(key: str) -> NDArray[Any]:
        kind, shape, data = (tensors[key][name] for name in ("dtype", "shape", "data"))
        if kind == "BF16":  # the upper half of a float32
            return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
        if kind not in _SAFETENSORS:
            raise FileProblem(f"{path}: {key} has a type NumPy lacks", seen=kind, allowed=", ".join(_SAFETENSORS))
        return np.frombuffer(data, _SAFETENSORS[kind]).reshape(shape)

    coarse = {key for key, tensor in tensors.items() if tensor["dtype"] == "BF16"}
    return _pieces(path, list(tensors), load, names, coarse)


_SAFETENSORS = {
    **{"F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "?"},
    **{f"{kind}{8 * size}": f"<{kind.lower()}{size}" for kind in "IU" for size in (8, 4, 2, 1)},
}


def read_torch(file: BinaryIO, path: str, names: Names) -> Found:
    """Read a dict of tensors from a .pt file with torch's weights-only loader."""
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise MissingExtra(f"reading {path} needs torch", hint="pip install torch, or save as .npz") from error
    try:
        held = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many types for a foreign file
        raise FileProblem(f"{path} cannot be read with weights-only loading", seen=_torch_reason(error)) from error
    if not isinstance(held, dict):
        raise FileProblem(f"{path} holds no dict of tensors", seen=type(held).__name__)
    tensors = {str(key): value for key, value in held.items() if isinstance(value, torch.Tensor)}

    def load(key: str) -> NDArray[Any]:
        try:
            return as_array(tensors[key], key)[0]
        except (InvalidInput, TypeError, RuntimeError) as error:  # sparse, quantised, …
            seen = str(error).splitlines()[0][:200]
            raise FileProblem(f"{path}: {key} is not a dense tensor of numbers", seen=seen) from error

    coarse = {key for key, tensor in tensors.items() if tensor.dtype == torch.bfloat16}
    return _pieces(path, list(tensors), load, names, coarse)


def _torch_reason(error: Exception) -> str:
    """What stopped the loader. Its own message advises to load without this protection, which is not passed on."""
    objects = re.search(r"GLOBAL (\S+)", str(error))
    if objects is not None:
        return f"objects of {objects.group(1)}; only tensors, numbers, strings, lists and dicts are read"
    return str(error).splitlines()[0][:120]
