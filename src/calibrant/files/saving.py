"""Saving a fitted map to one file without pickle, and reading it back."""

from __future__ import annotations

import datetime
import os
from typing import Any

import numpy as np

from .. import __version__
from ..errors import CalibrantError, FileProblem
from .atomic import read_bytes, replacing
from .container import pack, unpack
from .state import Tensors, decode, encode, refuse_depth

FORMAT = 2  # since classes go by their identifiers; in format 1, of calibrant 0.1.0, they went by their modules
_READABLE = (1, 2)
_MOST_COLUMNS = 10_000_000  # of scores or embeddings, to keep the probe of a forged file small


def save_map(fitted: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted calibrator; whatever stops it, ``path`` holds the old file or the new one."""
    data = to_bytes(fitted)
    with replacing(path) as out:
        out.write(data)


def to_bytes(fitted: Any) -> bytes:
    """Return the file of a fitted calibrator."""
    tensors: Tensors = {}
    tree = encode(fitted, tensors, type(fitted).__name__)
    document = {
        "format": FORMAT,
        "calibrant": __version__,
        "saved": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "summary": _summary(fitted),
        "calibrator": tree,
    }
    return pack(document, tensors)


def _summary(fitted: Any) -> dict[str, Any]:
    """What a person wants to know of the file; reading it back does not depend on it."""
    report, traits = fitted.fit_report_, fitted.traits
    numbers = {
        "before": report.loss_before,
        "after": report.loss_after,
        "held_out_before": report.held_out_before,
        "held_out_after": report.held_out_after,
    }
    return {
        "name": type(fitted).__name__,
        "rows": getattr(fitted, "n_samples_", None),
        "n_classes": len(fitted.classes_),
        "loss": report.loss,
        **{k: float(v) if v is not None and np.isfinite(v) else None for k, v in numbers.items()},
        "traits": {
            "shape": traits.shape,
            "preserves": traits.preserves,
            "calibrates": traits.calibrates,
            "parameters": traits.parameters,
            "needs": traits.needs,
        },
    }


def read_map(path: str | os.PathLike[str]) -> Any:
    """Read a fitted calibrator back. Nothing in the file is run, and what is not understood is refused."""
    document, tensors = _read(path)
    try:
        refuse_depth(document["calibrator"])
        fitted = decode(document["calibrator"], tensors)
        if getattr(fitted, "fit_report_", None) is None:
            raise FileProblem("its contents are no fitted calibrator", seen=type(fitted).__name__)
        _check(fitted)
    except CalibrantError as error:
        raise FileProblem(f"{path}: {error.what}", seen=error.seen, allowed=error.allowed, hint=error.hint) from error
    except Exception as error:  # a file made by hand can be wrong in any way; the user learns which file
        raise FileProblem(
            f"{path} does not describe a usable calibrator", seen=f"{type(error).__name__}: {error}"[:200]
        ) from error
    return fitted


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a saved file says of itself, without building the calibrator."""
    document, tensors = _read(path)
    arrays = {name: f"{a.dtype} {a.shape}" for name, a in tensors.items()}
    return {**document, "arrays": arrays}


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Tensors]:
    document, tensors = unpack(read_bytes(path), str(path))
    if document.get("format") not in _READABLE:
        raise FileProblem(
            f"{path} has a format this version of calibrant does not know",
            seen=f"format {document.get('format')!r}, written by calibrant {document.get('calibrant')}",
            allowed=f"formats up to {FORMAT}",
            hint="upgrade calibrant",
        )
    return document, tensors


def _check(fitted: Any) -> None:
    """Refuse what cannot answer a few rows of scores; its parameters and attributes were checked as they were read."""
    classes, columns = fitted.classes_, fitted.n_features_in_
    if fitted.traits.needs == "scores" and columns != len(classes):
        raise FileProblem("n_features_in_ and classes_ contradict one another", seen=f"{columns} and {len(classes)}")
    if fitted._sums_to_one and len(classes) < 2:
        raise FileProblem("a map has at least two classes", seen=str(len(classes)))
    if not hasattr(fitted, "n_samples_"):
        raise FileProblem("it does not say how many rows its map was fitted on")
    if columns > _MOST_COLUMNS:
        raise FileProblem("n_features_in_ is larger than any map's", seen=str(columns))
    line = np.linspace(-3.0, 3.0, columns)
    probe = np.vstack([np.zeros(columns), line, -line, 20.0 * line, 1e6 * line])
    with np.errstate(all="ignore"):
        answer = np.asarray(fitted._map(probe))
    valid = answer.shape == (len(probe), len(classes)) and bool(np.isfinite(answer).all()) and bool((answer >= 0).all())
    total = answer.sum(axis=1) if fitted._sums_to_one else 1.0
    if not valid or not np.allclose(total, 1.0, atol=1e-4):
        raise FileProblem("the stored arrays do not give probabilities", seen=f"shape {answer.shape}")
