"""Which label is the event, and labels that are not known, on the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant.cli.main import main

RNG = np.random.default_rng(4)
RISK = RNG.beta(1, 5, 300).round(4)
SICK = RNG.random(300) < RISK


def _table(path: Path, labels: Any, column: str = "risk") -> str:
    lines = [f"{p},{label}" for p, label in zip(RISK, labels, strict=True)]
    path.write_text("\n".join([f"{column},outcome", *lines]) + "\n")
    return str(path)


def _rate(capsys: pytest.CaptureFixture[str], *arguments: str) -> float:
    assert main(["measure", *arguments, "--labels", "outcome", "--json", "-q"]) == 0
    return json.loads(capsys.readouterr().out)["parts"][""]["metrics"]["event_rate"]["value"]


WORDS = np.where(SICK, "sick", "well")


@pytest.mark.parametrize("memory", [[], ["--memory", "2KB"]])
def test_the_event_is_the_label_that_is_named(
    memory: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_option, by_column = _table(tmp_path / "a.csv", WORDS), _table(tmp_path / "b.csv", WORDS, "p_sick")
    assert _rate(capsys, by_option, "--event", "sick", *memory) == pytest.approx(SICK.mean())
    assert _rate(capsys, by_option, "--event", "well", *memory) == pytest.approx(1 - SICK.mean())
    assert _rate(capsys, by_column, *memory) == pytest.approx(SICK.mean())


def test_an_event_that_nobody_named_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _table(tmp_path / "a.csv", WORDS)
    assert main(["measure", path, "--labels", "outcome"]) == 0
    told = capsys.readouterr()
    assert "one event: well" in told.out
    assert "--event names the other" in told.err
    assert main(["measure", _table(tmp_path / "b.csv", np.where(SICK, "yes", "no")), "--labels", "outcome"]) == 0
    told = capsys.readouterr()
    assert "one event: yes" in told.out
    assert "--event" not in told.err


def test_a_foreign_event_and_one_of_several_columns_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", _table(tmp_path / "a.csv", WORDS), "--labels", "outcome", "--event", "Sick"]) == 3
    assert "sick, well" in capsys.readouterr().err
    (tmp_path / "c.csv").write_text("p_a,p_b,label\n.2,.8,a\n.7,.3,b\n")
    assert main(["measure", str(tmp_path / "c.csv"), "--event", "a"]) == 3
    assert "single column" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["", "NA", "nan"])
def test_labels_that_are_missing_are_refused_by_line(
    missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = SICK.astype(int).astype(object)
    labels[5] = missing
    path = _table(tmp_path / "a.csv", labels)
    assert main(["measure", path, "--labels", "outcome"]) == 3
    assert "missing labels; seen: None in line 7" in capsys.readouterr().err
    known = _table(tmp_path / "b.csv", SICK.astype(int))
    saved = str(tmp_path / "map.calibrant")
    assert main(["fit", known, "--labels", "outcome", "--method", "platt", "-o", saved, "-q"]) == 0
    assert main(["apply", saved, path, "--labels", "outcome", "-o", str(tmp_path / "out.csv")]) == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 301


def test_an_empty_cell_is_no_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _table(tmp_path / "a.csv", np.where(SICK, "yes", ""))
    assert main(["measure", path, "--labels", "outcome"]) == 3
    assert "missing labels" in capsys.readouterr().err


def test_na_may_be_a_class_among_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _table(tmp_path / "a.csv", np.where(SICK, "NA", "DE"))
    assert _rate(capsys, path) == pytest.approx(SICK.mean())


def test_inspect_has_a_line_for_each_fact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", _table(tmp_path / "a.csv", SICK.astype(int)), "--labels", "outcome"]) == 0
    told = capsys.readouterr().out
    assert "\\n" not in told
    assert any(line.strip() == "rows: 300" for line in told.splitlines())


def test_inspect_names_the_event(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", _table(tmp_path / "a.csv", WORDS), "--labels", "outcome", "--json", "-q"]) == 0
    told = json.loads(capsys.readouterr().out)["parts"]["all"]
    assert told["event"] == "well"
    assert told["event_rate"] == pytest.approx(1 - SICK.mean())
