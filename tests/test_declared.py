"""One line a parameter and one a fitted attribute make the constructor and the tables of a map."""

import inspect

import pytest

from calibrant import Isotonic, Mixture
from calibrant.declared import attribute, declared, parameter
from calibrant.invariants import Values
from calibrant.parameters import Integer, OneOf


@declared
class Base:
    kind: str = parameter(OneOf("a", "b"), default="a", kw_only=True)
    first: int = parameter()
    seen_: int = attribute(default=0)


@declared
class Derived(Base):
    second: int = parameter(Integer(2), default=3)
    kind: str = parameter(OneOf("a", "b", "c"), default="c", kw_only=True)
    third: str = parameter(default="t", kw_only=True)
    found_: object = attribute(Values("K"), counted=True)
    _learnt = ()


def test_the_signature_has_bases_first_and_names_last():
    assert str(inspect.signature(Base)) == "(first: int, *, kind: str = 'a') -> None"
    assert (
        str(inspect.signature(Derived)) == "(first: int, second: int = 3, *, third: str = 't', kind: str = 'c') -> None"
    )


def test_parameters_are_stored_and_attributes_are_not_made():
    made = Derived(1, third="x")
    assert vars(made) == {"first": 1, "second": 3, "third": "x", "kind": "c"}
    assert made.seen_ == 0
    assert not hasattr(made, "found_")


def test_the_tables_hold_what_bases_say_as_well():
    assert Base._constraints == {"kind": OneOf("a", "b")}
    assert Derived._constraints == {"kind": OneOf("a", "b", "c"), "second": Integer(2)}
    assert Derived._state == {"found_": Values("K")}
    assert Derived._learnt == ("found_",)
    assert not hasattr(Base, "_state")


def test_a_missing_or_unknown_parameter_is_told_by_the_name_of_the_class():
    with pytest.raises(TypeError, match=r"Derived.__init__\(\) missing 1 required positional argument: 'first'"):
        Derived()
    with pytest.raises(TypeError, match=r"Isotonic.__init__\(\) got an unexpected keyword argument 'bend'"):
        Isotonic(bend=1)


def test_maps_take_their_own_parameters_before_those_of_all():
    assert list(inspect.signature(Mixture).parameters) == [
        *("parts", "weights", "loss", "cv"),
        *("handicaps", "inputs", "classes", "saturated"),
    ]
