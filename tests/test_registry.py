"""Names to maps."""

import re
from pathlib import Path

import pytest

import calibrant
from calibrant import Chain, TemperatureScaling, make, registry
from calibrant.calibrator import Calibrator
from calibrant.errors import InvalidInput


@pytest.mark.parametrize("entry", registry.entries(), ids=lambda entry: entry.name)
def test_every_entry_makes_a_fresh_map(entry):
    assert isinstance(entry.build(), Calibrator)
    assert entry.build() is not entry.build()
    assert repr(make(entry.name)) == repr(entry.build())
    assert entry.summary
    assert entry.traits == entry.build().traits


def test_names_are_plain_and_distinct():
    names = registry.names()
    assert len(set(names)) == len(names) == len(registry.entries())
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


def test_isotonic_is_irova_listed_once():
    assert "irova" in registry.names()
    assert "isotonic" not in registry.names()
    assert repr(make("isotonic", smoothing=0)) == repr(make("irova", smoothing=0))
    assert repr(make("ts > isotonic")) == repr(make("ts > irova"))


def test_parameters_reach_the_map_and_the_pieces_inside():
    assert make("ts", loss="brier", inputs="probabilities").get_params() == {
        "loss": "brier",
        "inputs": "probabilities",
        "classes": None,
        "saturated": "small",
    }
    chain = make("ts > ts", loss="brier")
    assert [part.loss for part in chain.parts] == ["brier", "brier"]
    assert make("ts > identity", inputs="probabilities").inputs == "probabilities"


def test_arrows_chain():
    chain = make("ts > identity > ts")
    assert isinstance(chain, Chain)
    assert [type(part).__name__ for part in chain.parts] == ["TemperatureScaling", "Identity", "TemperatureScaling"]


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("no-such-map", {}, "no map has this name; seen: 'no-such-map'; allowed: identity, uniform, ts"),
        ("ts > nothing", {}, "no map has this name; seen: 'nothing'"),
        ("ts >", {}, "no map has this name; seen: ''"),
        ("ts", {"colour": 1}, "ts has no parameter colour; allowed: classes, inputs, loss"),
    ],
)
def test_what_is_not_known_is_refused(name, parameters, message):
    with pytest.raises(InvalidInput, match=message):
        make(name, **parameters)


def test_every_calibrator_class_is_public():
    source = Path(calibrant.__file__).parent
    classes = set()
    for entry in registry.entries():
        classes |= {type(entry.build())}
    for kind in classes:
        assert getattr(calibrant, kind.__name__) is kind, f"{kind.__name__} is in {source} but not in calibrant"
    assert TemperatureScaling in classes


def test_auto_is_made_by_name():
    from calibrant import AutoCalibrator

    assert isinstance(make("auto"), AutoCalibrator)
    assert make("auto", inputs="probabilities").inputs == "probabilities"


@pytest.mark.parametrize(("said", "meant"), [("sigmoid", "platt"), ("Temperature", "ts"), ("histogram", "hb-width")])
def test_names_of_other_libraries_get_a_hint(said, meant):
    with pytest.raises(InvalidInput, match=rf"did you mean {meant}\?"):
        make(said)
