"""A corpus of broken inputs: each gets one clear line and the right exit code, and leaves nothing half-written."""

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import overconfident

from calibrant import make
from calibrant.cli.main import main
from calibrant.files.container import pack, unpack

Z, Y = overconfident(60, 3)
P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
DATA, FILE = 3, 4


def _spoiled(array: Any, row: int, value: float) -> Any:
    copy = np.array(array, dtype=float)
    copy[row, 1] = value
    return copy


class _Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch pwned",)


def _npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _npy(array: Any, pickled: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=pickled)
    return buffer.getvalue()


def _zip(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def _huge_header() -> bytes:
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 1000), }"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text + b"\n"


GOOD = _npz(logits=Z, labels=Y)
# name: (file, content, exit code, words of the message)
SCORES: dict[str, tuple[str, bytes, int, str]] = {
    "empty npz": ("a.npz", b"", FILE, "empty"),
    "npz is text": ("a.npz", b"hello", FILE, "damaged"),
    "npz is an npy": ("a.npz", _npy(Z), FILE, "damaged"),
    "npz cut in the middle": ("a.npz", GOOD[: len(GOOD) // 2], FILE, "damaged"),
    "npz cut at the end": ("a.npz", GOOD[:-5], FILE, "damaged"),
    "npz of one zip signature": ("a.npz", b"PK\x03\x04", FILE, "damaged"),
    "npz member is no array": ("a.npz", _zip(logits=b"junk", labels=_npy(Y)), FILE, "logits"),
    "npz member is empty": ("a.npz", _zip(logits=b"", labels=_npy(Y)), FILE, "logits"),
    "npz member is huge": ("a.npz", _zip(logits=_huge_header(), labels=_npy(Y)), FILE, "logits"),
    "npz with no key": ("a.npz", _zip(), DATA, "no scores"),
    "npz with other keys": ("a.npz", _npz(a=Z, b=Y), DATA, "no scores"),
    "npz without labels": ("a.npz", _npz(logits=Z), DATA, "no labels"),
    "npz without scores": ("a.npz", _npz(labels=Y), DATA, "no scores"),
    "kind not said": ("a.npz", _npz(scores=Z, labels=Y), DATA, "--kind"),
    "logits and probabilities": ("a.npz", _npz(logits=Z, probs=P, labels=Y), DATA, "several scores"),
    "labels twice": ("a.npz", _npz(logits=Z, labels=Y, y=Y), DATA, "several labels"),
    "objects as scores": ("a.npz", _npz(logits=np.array([_Evil()]), labels=Y[:1]), FILE, "pickle"),
    "objects as labels": ("a.npz", _npz(logits=Z, labels=np.array([_Evil()] * 60)), FILE, "pickle"),
    "malicious npy": ("logits.npy", _npy(np.array([_Evil()]), pickled=True), FILE, "pickle"),
    "pickle called npy": ("logits.npy", pickle.dumps(_Evil()), FILE, "damaged"),
    "pickle called npz": ("a.npz", pickle.dumps(_Evil()), FILE, "damaged"),
    "pickle": ("a.pkl", pickle.dumps(_Evil()), FILE, "pickle"),
    "torch file": ("a.pt", b"PK\x03\x04", FILE, "--allow-torch"),
    "npy cut": ("logits.npy", _npy(Z)[:100], FILE, "damaged"),
    "npy without labels": ("logits.npy", _npy(Z), DATA, "no labels"),
    "npy of unknown kind": ("x.npy", _npy(Z), DATA, "--kind"),
    "npy of labels": ("labels.npy", _npy(Y), DATA, "holds labels"),
    "NaN": ("a.npz", _npz(logits=_spoiled(Z, 7, np.nan), labels=Y), DATA, "row 7"),
    "plus infinity": ("a.npz", _npz(logits=_spoiled(Z, 8, np.inf), labels=Y), DATA, "row 8"),
    "row of -inf": ("a.npz", _npz(logits=np.where(np.arange(60)[:, None] == 3, -np.inf, Z), labels=Y), DATA, "row 3"),
    "NaN probability": ("a.npz", _npz(probs=_spoiled(P, 9, np.nan), labels=Y), DATA, "row 9"),
    "probability above one": ("a.npz", _npz(probs=_spoiled(P, 4, 1.5), labels=Y), DATA, "row 4"),
    "negative probability": ("a.npz", _npz(probs=_spoiled(P, 5, -0.1), labels=Y), DATA, "row 5"),
    "rows that do not sum to one": ("a.npz", _npz(probs=P / 2, labels=Y), DATA, "sum"),
    "probabilities called logits": ("a.npz", _npz(logits=P, labels=Y), DATA, "announced as logits"),
    "logits called probabilities": ("a.npz", _npz(probs=Z, labels=Y), DATA, "announced as probabilities"),
    "scores and labels swapped": ("a.npz", _npz(logits=Y, labels=Z), DATA, "a.npz"),
    "one-hot labels": ("a.npz", _npz(logits=Z, labels=np.eye(3)[Y]), DATA, "write the number of the class"),
    "labels too few": ("a.npz", _npz(logits=Z, labels=Y[:-1]), DATA, "60 and 59"),
    "labels off by one": ("a.npz", _npz(logits=Z, labels=np.where(Y == 0, 3, Y + 1)), DATA, "does not fit"),
    "labels negative": ("a.npz", _npz(logits=Z, labels=Y - 5 * (np.arange(60) == 2)), DATA, "does not fit"),
    "labels fractions": ("a.npz", _npz(logits=Z, labels=Y + 0.5), DATA, "fractions"),
    "labels NaN": ("a.npz", _npz(logits=Z, labels=np.where(Y == 0, np.nan, Y)), DATA, "NaN"),
    "scores are text": ("a.npz", _npz(logits=Z.astype(str), labels=Y), DATA, "numbers"),
    "scores are complex": ("a.npz", _npz(logits=Z + 1j, labels=Y), DATA, "numbers"),
    "scores are dates": ("a.npz", _npz(logits=Y.astype("M8[s]"), labels=Y), DATA, "numbers"),
    "scores are three-dimensional": ("a.npz", _npz(logits=Z[None], labels=Y), DATA, "dimensions"),
    "scores are one number": ("a.npz", _npz(logits=np.array(1.0), labels=Y), DATA, "logits"),
    "no rows": ("a.npz", _npz(logits=Z[:0], labels=Y[:0]), DATA, "empty"),
    "no columns": ("a.npz", _npz(logits=Z[:, :0], labels=Y), DATA, "no columns"),
    "negative weights": ("a.npz", _npz(logits=Z, labels=Y, weights=-np.ones(60)), DATA, "weight"),
    "zero weights": ("a.npz", _npz(logits=Z, labels=Y, weights=np.zeros(60)), DATA, "weight"),
    "NaN weights": ("a.npz", _npz(logits=Z, labels=Y, weights=np.full(60, np.nan)), DATA, "weights"),
    "parts of two widths": ("a.npz", _npz(logits_val=Z, y_val=Y, logits_test=Z[:, :2], y_test=Y % 2), DATA, "classes"),
    "parts of other kinds": ("a.npz", _npz(logits_val=Z, labels_val=Y, probs_test=P, labels_test=Y), DATA, "another"),
    "csv empty line": ("a.csv", b"\n\n", DATA, "empty"),
    "csv of zeros": ("a.csv", b"\0\0\0", FILE, "text"),
    "csv in latin": ("a.csv", "prob_é,prob_b,y\n1,0,0\n".encode("latin-1"), FILE, "UTF-8"),
    "csv without header": ("a.csv", b"1,2,0\n3,4,1\n", DATA, "no scores"),
    "csv cell": ("a.csv", b"logit_a,logit_b,y\n1,2,a\n3,?,b\n", DATA, "line 3"),
    "csv short row": ("a.csv", b"logit_a,logit_b,y\n1,2,a\n3\n", DATA, "line 3"),
    "csv open quote": ("a.csv", b'logit_a,logit_b,y\n"1,2,a\n', FILE, "table"),
    "csv label of no column": ("a.csv", b"logit_a,logit_b,y\n1,2,a\n3,5,c\n", DATA, "'c'"),
    "csv markup in names": ("a.csv", b"logit_<script>,logit_b,y\n1,x,b\n", DATA, "logit_b"),
    "parquet": ("a.parquet", b"PAR1PAR1", FILE, "damaged"),
    "arrow": ("a.arrow", b"ARROW1\0\0", FILE, "damaged"),
    "safetensors": ("a.safetensors", b"\xff" * 64, FILE, "damaged"),
    "unknown ending": ("a.docx", b"PK\x03\x04", FILE, "ending"),
    "no ending": ("a", b"x", FILE, "ending"),
}  # fmt: skip


def _check(arguments: list[str], code: int, words: str, where: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in where.iterdir() if path.is_file()}
    assert main(arguments) == code
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == ""
    assert lines[-1].startswith("error: ")
    assert words in lines[-1]
    assert len(lines) == 1
    assert {path: path.read_bytes() for path in where.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("name", list(SCORES))
def test_broken_scores(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file, content, code, words = SCORES[name]
    (tmp_path / file).write_bytes(content)
    _check(["measure", file, "--json"], code, words, tmp_path, capsys)
    _check(["fit", file, "--method", "ts", "-o", "m.calibrant"], code, words, tmp_path, capsys)
    _check(["compare", file, "--methods", "ts", "-o", "m.calibrant"], code, words, tmp_path, capsys)


def test_the_corpus_is_large() -> None:
    assert len(SCORES) + len(MAPS) >= 60


def test_one_class_only(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.npz").write_bytes(_npz(logits=Z, labels=np.zeros(60, dtype=int)))
    _check(["fit", "a.npz", "--method", "ts", "-o", "m.calibrant"], DATA, "one class only", tmp_path, capsys)


# Saved maps -------------------------------------------------------------------------------------------------------


def _saved() -> bytes:
    from calibrant.files.saving import to_bytes

    return to_bytes(make("ets").fit(Z, Y))


def _changed(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> bytes:
    document, tensors = unpack(_saved(), "x")
    change(document, tensors)
    return pack(document, tensors)


def _flip(place: Callable[[bytes], int]) -> bytes:
    data = bytearray(_saved())
    data[place(bytes(data))] ^= 0x15
    return bytes(data)


MAPS: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"a map",
    "pickle": lambda: pickle.dumps(_Evil()),
    "npz": lambda: GOOD,
    "header length": lambda: _flip(lambda data: 0),
    "header length, high byte": lambda: _flip(lambda data: 7),
    "header, first byte": lambda: _flip(lambda data: 8),
    "header, a name": lambda: _flip(lambda data: data.index(b"__metadata__")),
    "header, the document": lambda: _flip(lambda data: data.index(b"temperature_")),
    "header, the checksum": lambda: _flip(lambda data: data.index(b"sha256") + 20),
    "header, a type": lambda: _flip(lambda data: data.index(b'"F64"') + 2),
    "header, an offset": lambda: _flip(lambda data: data.index(b"data_offsets") + 15),
    "numbers, first byte": lambda: _flip(lambda data: 8 + struct.unpack("<Q", data[:8])[0]),
    "numbers, last byte": lambda: _flip(lambda data: len(data) - 1),
    "cut": lambda: _saved()[:-1],
    "longer": lambda: _saved() + b"\0",
    "other format": lambda: _changed(lambda d, t: d.update(format=99)),
    "other class": lambda: _changed(lambda d, t: d["calibrator"]["map"].update({"class": "subprocess:Popen"})),
    "bad weights": lambda: _changed(lambda d, t: t.update({k: -v for k, v in t.items() if v.dtype == np.float64})),
    "NaN weights": lambda: _changed(
        lambda d, t: t.update({k: v * np.nan for k, v in t.items() if v.dtype == np.float64})
    ),
    "bottomless": lambda: struct.pack("<Q", 200_000) + b"[" * 200_000,
}


@pytest.mark.parametrize("name", list(MAPS))
def test_broken_maps(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.calibrant").write_bytes(MAPS[name]())
    (tmp_path / "a.npz").write_bytes(GOOD)
    _check(["inspect", "m.calibrant"], FILE, "m.calibrant", tmp_path, capsys)
    _check(["apply", "m.calibrant", "a.npz", "-o", "p.npz"], FILE, "m.calibrant", tmp_path, capsys)


def test_targets_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.npz").write_bytes(GOOD)
    (tmp_path / "old.calibrant").write_bytes(_saved())
    (tmp_path / "d").mkdir()
    _check(["fit", "a.npz", "--method", "ts", "-o", "d"], FILE, "directory", tmp_path, capsys)
    _check(["fit", "a.npz", "--method", "ts", "-o", "none/m"], FILE, "no directory", tmp_path, capsys)
    _check(["apply", "old.calibrant", "a.npz", "-o", "p.docx"], FILE, "ending", tmp_path, capsys)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    _check(["fit", "a.npz", "--method", "ts", "-o", "old.calibrant"], FILE, "No space", tmp_path, capsys)
    _check(["apply", "old.calibrant", "a.npz", "-o", "p.npz"], FILE, "No space", tmp_path, capsys)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.npz").write_bytes(GOOD)
    (tmp_path / "a.npz").chmod(0)
    assert main(["measure", str(tmp_path / "a.npz")]) == FILE


def test_another_number_of_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.calibrant").write_bytes(_saved())
    (tmp_path / "a.npz").write_bytes(_npz(logits=Z[:, :2], labels=Y % 2))
    _check(["apply", "m.calibrant", "a.npz", "-o", "p.npz"], DATA, "different numbers of classes", tmp_path, capsys)


def test_json_stays_json_with_markup_in_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text('logit_<script>"x",logit_b,y\n1,2,b\n3,1,<script>"x"\n'.replace('"', "'"))
    assert main(["inspect", str(tmp_path / "a.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["class_names"][0] == "<script>'x'"
