"""The classes a saved file may name: calibrators that this process has already imported, and nothing else."""

from __future__ import annotations

from ..errors import FileProblem

__all__ = ["class_path", "find_class", "is_known", "remember"]

_KNOWN: dict[str, type] = {}


def class_path(cls: type) -> str:
    """Return the name under which files know a class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def remember(cls: type) -> None:
    """Let files name this class; `Calibrator` calls it for every subclass as it is defined."""
    _KNOWN[class_path(cls)] = cls


def is_known(cls: type) -> bool:
    """Tell whether objects of exactly this class can be saved."""
    return _KNOWN.get(class_path(cls)) is cls


def find_class(path: str) -> type:
    """Return the class of this name; a name from a file never imports anything."""
    if path in _KNOWN:
        return _KNOWN[path]
    module = path.partition(":")[0]
    if module.split(".")[0] == "calibrant":
        hint = "the file comes from another version of calibrant: upgrade, or fit the map again"
    else:
        hint = f"it is a map of your own: import {module} before loading"
    raise FileProblem("the file names a calibrator that is not known here", seen=repr(path[:200]), hint=hint)
