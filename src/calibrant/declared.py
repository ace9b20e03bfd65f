"""What the class of a map declares, a line each: the parameters of its constructor, and what its fit sets.

    @declared
    class Sharpened(Calibrator):
        most: float = parameter(Number(1, 10), default=2.0)
        power_: float = attribute(Number(0, 10), counted=True)

The constructor, the checks of parameters and of saved files, and the count of what was learnt follow from these lines;
a class may also write ``__init__``, ``_constraints``, ``_state`` and ``_learnt`` itself.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, make_dataclass
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    dataclass_transform = lambda **_: lambda function: function  # noqa: E731  Python 3.10 has none

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class _Parameter:
    allowed: Any
    default: Any
    kw_only: bool


@dataclass(frozen=True)
class _Attribute:
    check: Any
    default: Any
    counted: bool


def parameter(allowed: Any = None, *, default: Any = MISSING, kw_only: bool = False) -> Any:
    """Declare a parameter: which values are allowed (see `parameters`; None: any), and its default."""
    return _Parameter(allowed, default, kw_only)


def attribute(check: Any = None, *, default: Any = MISSING, counted: bool = False, init: Literal[False] = False) -> Any:
    """Declare what a fit sets: what it must be (see `invariants`), and whether it counts as learnt.

    ``default`` is what it is where older files have none. ``init`` tells type checkers that it is no parameter.
    """
    return _Attribute(check, default, counted)


@dataclass_transform(eq_default=False, field_specifiers=(parameter, attribute))
def declared(cls: Class) -> Class:
    """Give a class the constructor and the tables that its declarations, and those of its bases, say."""
    own = {name: value for name, value in vars(cls).items() if isinstance(value, (_Parameter, _Attribute))}
    made: Any = cls
    for name, value in own.items():
        if value.default is MISSING:
            delattr(made, name)
        else:
            setattr(made, name, value.default)
    parameters = {name: value for name, value in own.items() if isinstance(value, _Parameter)}
    attributes = {name: value for name, value in own.items() if isinstance(value, _Attribute)}
    _extend(cls, "_constraints", {name: value.allowed for name, value in parameters.items()})
    _extend(cls, "_state", {name: value.check for name, value in attributes.items()})
    counted = tuple(name for name, value in attributes.items() if value.counted)
    if counted:
        made._learnt = (*made._learnt, *counted)
    if parameters:
        _construct(cls, parameters)
    return cls


def _extend(cls: type, table: str, own: dict[str, Any]) -> None:
    """Add to a table of the bases what is said of the class's own names."""
    said = {name: value for name, value in own.items() if value is not None}
    if said:
        setattr(cls, table, {**(getattr(cls, table, None) or {}), **said})


def _construct(cls: Any, own: dict[str, _Parameter]) -> None:
    """Set a constructor that stores its parameters: those of bases first, but last of those that need their name."""
    types, of_bases = get_annotations(cls), getattr(cls, "_fields", {})
    known = {**of_bases, **{name: (types[name], value) for name, value in own.items()}}
    order = sorted(known.items(), key=lambda item: (item[1][1].kw_only, item[1][1].kw_only and item[0] in of_bases))
    cls._fields = known
    fields = [(name, kind, field(default=p.default, kw_only=p.kw_only)) for name, (kind, p) in order]
    cls.__init__ = make_dataclass(cls.__name__, fields).__init__
