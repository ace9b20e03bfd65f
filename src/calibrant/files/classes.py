"""The classes a saved file may name: calibrators that this process has already imported, and nothing else.

A class of calibrant declares the name that files know it by, ``_identifier = "temperature-scaling"``, which stays when
its module or the class is renamed. A map of a user's own that declares none goes by "module:qualname".
"""

from __future__ import annotations

import re

from ..errors import FileProblem, InvalidInput

_KNOWN: dict[str, type] = {}


def identifier_of(cls: type) -> str:
    """Return the name under which files know a class: the one it declares itself, or where it lives."""
    return cls.__dict__.get("_identifier") or _place(cls)


def _place(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def remember(cls: type) -> None:
    """Let files name this class; `Calibrator` calls it for every subclass as it is defined.

    Defining a class again, as a notebook does, replaces it; another class of the same identifier is refused.
    """
    identifier = identifier_of(cls)
    other = _KNOWN.get(identifier, cls)
    if _place(other) != _place(cls):
        raise InvalidInput(
            f"two classes have the identifier {identifier!r}",
            seen=f"{_place(other)} and {_place(cls)}",
            hint="give one of them another _identifier",
        )
    _KNOWN[identifier] = cls


def is_known(cls: type) -> bool:
    """Tell whether objects of exactly this class can be saved."""
    return _KNOWN.get(identifier_of(cls)) is cls


def find_class(name: str) -> type:
    """Return the class of this identifier; a name from a file never imports anything.

    Files of 0.1.0 name "calibrant.maps.binary.platt:PlattScaling" what is "platt-scaling" since.
    """
    module, colon, called = name.partition(":")
    old = re.sub("(?<=[a-z])(?=[A-Z])", "-", called).lower() if module.startswith("calibrant.") else name
    for identifier in (name, old):
        if identifier in _KNOWN:
            return _KNOWN[identifier]
    if not colon or module.split(".")[0] == "calibrant":
        hint = "the file comes from another version of calibrant: upgrade, or fit the map again"
    else:
        hint = f"it is a map of your own: import {module} before loading"
    raise FileProblem("the file names a calibrator that is not known here", seen=repr(name[:200]), hint=hint)
