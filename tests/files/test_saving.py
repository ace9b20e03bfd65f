"""Saved calibrators: exact for every map, safe against every damage."""

import json
import os
import pickle
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import overconfident

import calibrant
from calibrant import Calibrator, Chain, make, registry
from calibrant.errors import CalibrationWarning, FileProblem, InvalidInput
from calibrant.files.container import pack, unpack
from calibrant.files.saving import read_document
from calibrant.fits.report import FitReport
from calibrant.traits import Traits


def _fitted(calibrator: Calibrator, rows: int = 120, k: int = 4) -> tuple[Calibrator, np.ndarray]:
    z, y = overconfident(rows, k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return calibrator.fit(z, y), z


@pytest.mark.parametrize("name", registry.names())
def test_round_trip_is_exact(name: str, tmp_path: Path) -> None:
    try:
        fitted, z = _fitted(make(name), rows=80)
    except InvalidInput:  # a map of one event
        fitted, z = _fitted(make(name), rows=80, k=2)
    fitted.save(tmp_path / "m.calibrant")
    loaded = calibrant.load(tmp_path / "m.calibrant")
    assert type(loaded) is type(fitted)
    assert repr(loaded) == repr(fitted)
    for dtype in ("float32", "float64"):
        scores = (z * 1.1).astype(dtype)
        assert loaded.predict_proba(scores).tobytes() == fitted.predict_proba(scores).tobytes()
        assert (loaded.predict(scores) == fitted.predict(scores)).all()


def test_nested_chain_round_trip(tmp_path: Path) -> None:
    inner = Chain([make("ts"), Chain([make("identity"), make("ts", loss="brier")])])
    fitted, z = _fitted(inner)
    fitted.save(tmp_path / "m")
    loaded = calibrant.load(tmp_path / "m")
    assert loaded.predict_proba(z).tobytes() == fitted.predict_proba(z).tobytes()
    loaded.save(tmp_path / "again")
    first, second = read_document(tmp_path / "m"), read_document(tmp_path / "again")
    assert first["calibrator"] == second["calibrator"]


@pytest.mark.parametrize(
    "classes", [["cat", "dog", "<b>", "鶏"], [3, 1, 4, 15], ["a", "b", "\udc80", ""], [-2, 1, 0, 7]]
)
def test_class_names_survive(classes: list[Any], tmp_path: Path) -> None:
    z, y = overconfident(80, 4)
    labels = np.asarray(classes)[y]
    fitted = make("ts", classes=classes).fit(z, labels)
    fitted.save(tmp_path / "m")
    loaded = calibrant.load(tmp_path / "m")
    assert loaded.classes_.tolist() == fitted.classes_.tolist()
    assert loaded.classes_.dtype == fitted.classes_.dtype
    assert (loaded.predict(z) == fitted.predict(z)).all()


class Odd(Calibrator):
    """A user's own map, with every kind of value a state may hold."""

    _traits = Traits("scaling", "ranking", "full", "0")

    def __init__(self, table: Any = None, *, inputs: str = "logits", classes: Any = None) -> None:
        self.table = table
        self.inputs = inputs
        self.classes = classes

    def _fit_rows(self, sample: Any) -> FitReport:
        self.things_ = {
            1: (1, 2.5, None, True, "text"),
            "nan": [float("nan"), float("inf"), -0.0, 1e-320, 10**30],
            "arrays": [np.float32(0.1), np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.array(3), np.zeros((0, 2))],
            (1, 2): {"nested": make("ts"), "empty": ()},
        }
        return FitReport(0, True, "nll", 1.0, 0.5, 1.0, 0.5, 0.0, details={"x": np.arange(3), "r": [1, (2,)]})

    def _map(self, logits: Any) -> Any:
        return np.full_like(logits, 1 / logits.shape[1])


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tobytes("A") == b.tobytes("A") and a.flags.f_contiguous == b.flags.f_contiguous
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same(v, b[k]) for k, v in a.items())
    return type(a) is type(b) and repr(a) == repr(b)


def test_every_kind_of_value_survives(tmp_path: Path) -> None:
    fitted, _ = _fitted(Odd(table={"a": [1, 2]}))
    fitted.save(tmp_path / "m")
    loaded = calibrant.load(tmp_path / "m")
    assert isinstance(loaded, Odd)
    assert _same(loaded.things_, fitted.things_)
    assert loaded.table == {"a": [1, 2]}
    assert _same(loaded.fit_report_.details, fitted.fit_report_.details)


def test_what_cannot_be_saved_is_named(tmp_path: Path) -> None:
    fitted, _ = _fitted(Odd(table={"f": print}))
    with pytest.raises(InvalidInput, match=r"Odd\.table\['f'\]"):
        fitted.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_unfitted_maps_are_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not fitted"):
        make("ts").save(tmp_path / "m")


# Damage -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    _fitted(make("ts > ts"))[0].save(tmp_path / "m.calibrant")
    return tmp_path / "m.calibrant"


def test_a_flipped_bit_anywhere_is_noticed(saved: Path) -> None:
    data = saved.read_bytes()
    before = calibrant.load(saved).predict_proba(3 * np.eye(4)).tobytes()
    for position in range(0, len(data), 7):
        broken = bytearray(data)
        broken[position] ^= 1 << (position % 8)
        saved.write_bytes(bytes(broken))
        try:
            loaded = calibrant.load(saved)
        except FileProblem as error:
            assert str(saved) in str(error)  # noqa: PT017
        else:  # a blank of the header's padding may become another blank
            assert loaded.predict_proba(3 * np.eye(4)).tobytes() == before


@pytest.mark.parametrize("keep", [0, 1, 7, 8, 9, 100, -1])
def test_a_cut_file_is_noticed(saved: Path, keep: int) -> None:
    saved.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(FileProblem, match="damaged"):
        calibrant.load(saved)


def _forge(saved: Path, change: Any) -> None:
    document, tensors = unpack(saved.read_bytes(), "x")
    change(document, tensors)
    saved.write_bytes(pack(document, tensors))


def _set(path: str, value: Any) -> Any:
    def change(document: Any, tensors: Any) -> None:
        *steps, last = path.split("/")
        for step in steps:
            document = document[int(step) if step.isdigit() else step]
        document[last] = value

    return change


_MAP = "calibrator/map"
_FORGERIES = {
    "format": (_set("format", 99), "format"),
    "class unknown": (_set(f"{_MAP}/class", "os:system"), "not known"),
    "class of calibrant, unknown": (_set(f"{_MAP}/class", "calibrant.maps:Future"), "upgrade"),
    "class no string": (_set(f"{_MAP}/class", 7), "usable"),
    "parameter unknown": (_set(f"{_MAP}/parameters/extra", 1), "extra"),
    "parameter out of range": (_set(f"{_MAP}/parameters/inputs", "guess"), "inputs"),
    "dunder": (_set(f"{_MAP}/state/__class__", 1), "__class__"),
    "private": (_set(f"{_MAP}/state/_map", 1), "_map"),
    "no attribute name": (_set(f"{_MAP}/state/a b_", 1), "a b_"),
    "classes twice": (_set(f"{_MAP}/state/classes_", [1, 1, 2, 3]), "each class once"),
    "columns": (_set(f"{_MAP}/state/n_features_in_", 5), "contradict"),
    "columns huge": (_set(f"{_MAP}/state/n_features_in_", 10**18), "contradict"),
    "parts missing": (_set(f"{_MAP}/state/parts_", []), "usable"),
    "parts wrong": (_set(f"{_MAP}/state/parts_", [1, 2]), "usable"),
    "parts no map": (_set(f"{_MAP}/parameters/parts", ["ts"]), "calibrator"),
    "unknown tag": (_set(f"{_MAP}/state/x_", {"pickle": "gASV"}), "unknown kind"),
    "array missing": (_set(f"{_MAP}/state/x_", {"array": "t99"}), "t99"),
    "object type": (_set(f"{_MAP}/state/x_", {"objects": [], "shape": [0], "dtype": "V8"}), "unknown type"),
    "bad shape": (_set(f"{_MAP}/state/x_", {"objects": [1], "shape": [7], "dtype": "O"}), "usable"),
    "no map": (_set("calibrator", 5), "no fitted"),
    "unfitted": (_set("calibrator", {"map": {"class": "calibrant.maps.scaling.temperature:TemperatureScaling",
                                             "parameters": {}, "state": {}}}), "no fitted"),
    "no calibrator": (lambda document, _: document.pop("calibrator"), "usable"),
    "report": (_set(f"{_MAP}/state/fit_report_", {"report": {}}), "usable"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(_FORGERIES))
def test_a_forged_file_is_refused(name: str, saved: Path) -> None:
    change, message = _FORGERIES[name]
    _forge(saved, change)
    with pytest.raises(FileProblem, match=message):
        calibrant.load(saved)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 0, "1", None])
def test_a_forged_temperature_is_refused(saved: Path, value: Any) -> None:
    number = {"float": repr(value)} if isinstance(value, float) and not np.isfinite(value) else value
    _forge(saved, _set(f"{_MAP}/state/parts_/1/map/state/temperature_", number))
    with pytest.raises(FileProblem):
        calibrant.load(saved)


def test_a_header_of_any_length_is_read() -> None:
    """The first bytes of a file are the length of its header, and may be those of a pickle."""
    seen = set()
    for extra in range(1000):
        data = pack({"a": "x" * extra}, {})
        seen.add(data[:2])
        assert unpack(data, "m")[0] == {"a": "x" * extra}
    assert b"\x80\x02" in seen


def test_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {tmp_path}/pwned",)

    for protocol in range(2, 6):
        (tmp_path / "m").write_bytes(pickle.dumps(Evil(), protocol=protocol))
        with pytest.raises(FileProblem, match="pickle"):
            calibrant.load(tmp_path / "m")
    assert not (tmp_path / "pwned").exists()


def test_a_bottomless_header_is_refused(tmp_path: Path) -> None:
    header = json.dumps({"__metadata__": {"calibrant": "[" * 100_000, "sha256": ""}}).encode()
    (tmp_path / "m").write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(FileProblem):
        calibrant.load(tmp_path / "m")


def test_paths_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="No such file"):
        calibrant.load(tmp_path / "none")
    with pytest.raises(FileProblem, match="directory"):
        calibrant.load(tmp_path)
    fitted, _ = _fitted(make("ts"))
    with pytest.raises(FileProblem, match="a directory"):
        fitted.save(tmp_path)
    with pytest.raises(FileProblem, match="no directory"):
        fitted.save(tmp_path / "none" / "m")
