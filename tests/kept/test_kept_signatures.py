"""What public functions and classes take, and what they take where nothing is said, is what it was."""

import inspect

import pytest
from tests.kept.comparing import check

import calibrant
from calibrant import metrics, monitoring, simulation

ROOMS = {"calibrant": calibrant, "metrics": metrics, "monitoring": monitoring, "simulation": simulation}


def defaults(thing):
    """Return each parameter's default, and those of public methods."""
    found = {}
    members = [("", thing)]
    if inspect.isclass(thing):
        ours = [
            base for base in thing.__mro__[::-1] if base.__module__.startswith("calibrant")
        ]  # also what is inherited
        members += [(name, member) for base in ours for name, member in vars(base).items() if not name.startswith("_")]
    for name, member in members:
        if isinstance(member, (classmethod, staticmethod)):
            member = member.__func__
        if not callable(member):
            continue
        try:
            parameters = inspect.signature(member).parameters.values()
        except (TypeError, ValueError):
            continue
        for p in parameters:
            found[f"{name}({p.name})"] = "needed" if p.default is p.empty else repr(p.default)
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_public_names_take_what_they_took(room):
    module = ROOMS[room]
    found = {
        name: defaults(getattr(module, name)) for name in sorted(module.__all__) if callable(getattr(module, name))
    }
    plain = {f"{name}.{part}": text for name, parts in found.items() for part, text in parts.items()}
    check("signatures", room, plain, more=True)
