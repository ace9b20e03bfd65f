"""Files as people have them: exports of Excel, answers of language models, arrays of one column, weights of rows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant
from calibrant.cli.main import main

RNG = np.random.default_rng(12)
RISK = RNG.beta(1, 3, 400).round(3)
DIED = RNG.random(400) < RISK


def told(capsys: pytest.CaptureFixture[str], *arguments: Any) -> dict[str, Any]:
    assert main(["measure", *map(str, arguments), "--json", "-q"]) == 0
    return json.loads(capsys.readouterr().out)["parts"][""]


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any, code: int = 3) -> str:
    assert main(["measure", *map(str, arguments)]) == code
    return capsys.readouterr().err


def export(path: Path, cells: list[str], encoding: str = "utf-8-sig") -> Path:
    rows = [f"Süd;{cell};{int(d)};1" for cell, d in zip(cells, DIED, strict=True)]
    path.write_text("\n".join(["Ort;Wert;died;w", *rows]) + "\n", encoding=encoding)
    return path


def german(p: float) -> str:
    return f"{100 * p:.1f} %".replace(".", ",")


def test_percent_signs_say_in_batches_too_what_scores_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = export(tmp_path / "a.csv", [german(p) for p in RISK])
    options = "--scores", "Wert", "--labels", "died"
    expected = calibrant.measure(DIED.astype(int), RISK).metrics["brier"].estimate
    for path in (whole, tmp_path / "a*.csv"):
        assert told(capsys, path, *options)["metrics"]["brier"]["value"] == pytest.approx(expected)


def test_a_text_in_other_letters_is_told_by_line_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = export(tmp_path / "a.csv", [german(p) for p in RISK], "latin-1")
    said = refused(capsys, path, "--scores", "Wert", "--labels", "died", code=4)
    assert 'seen: byte 0xfc in line 2; hint: save it in UTF-8, in Excel as "CSV UTF-8"' in said
    said = refused(capsys, tmp_path / "a*.csv", "--scores", "Wert", "--labels", "died", code=4)
    assert "seen: byte 0xfc; hint: save it in UTF-8" in said


def test_a_weight_below_zero_is_told_by_its_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = export(tmp_path / "a.csv", [german(p) for p in RISK])
    path.write_text(path.read_text("utf-8-sig").replace(";1\n", ";-1\n", 1))
    said = refused(capsys, path, "--scores", "Wert", "--labels", "died", "--weights", "w")
    assert "a.csv: w has negative weights; seen: -1 in line" in said


@pytest.mark.parametrize("pattern", ["a.jsonl", "a*.jsonl"])
def test_numbers_in_quotes_are_read_as_a_csv_reads_them(
    pattern: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(cells: list[Any]) -> None:
        rows = [{"confidence": cell, "correct": bool(d)} for cell, d in zip(cells, DIED, strict=True)]
        (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")

    expected = calibrant.measure(DIED.astype(int), RISK).metrics["brier"].estimate
    for cells in ([f"{100 * p:.1f}%" for p in RISK], [f"{p}" for p in RISK]):
        write(cells)
        assert told(capsys, tmp_path / pattern)["metrics"]["brier"]["value"] == pytest.approx(expected)
    write(["0.5%" if i == 7 else f"{p}" for i, p in enumerate(RISK)])
    said = refused(capsys, tmp_path / pattern)
    assert "'0.5%' in line 8" in said
    assert "a percent sign belongs in every cell" in said


def test_an_array_of_one_column_is_an_event(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    y, found = DIED.astype(int), []
    for shape in ((400,), (400, 1)):
        np.savez(tmp_path / "a.npz", probs=RISK.reshape(shape), labels=y)
        found.append(told(capsys, tmp_path / "a.npz"))
    assert found[0]["event"]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.r_[np.arange(4).repeat(99), 0, 1, 5, 3], "5 in row 398, of 5 distinct labels"),
        (np.r_[np.arange(4).repeat(99), 0, 1, -100, 3], "labels holds -100, which torch leaves out"),
        (np.eye(4)[RNG.integers(0, 4, 400)], "hint: of one-hot rows, write the number of the class"),
    ],
)
def test_labels_that_fit_no_column_are_named(
    labels: Any, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "a.npz", logits=RNG.normal(size=(400, 4)), labels=labels)
    assert said in refused(capsys, tmp_path / "a.npz")


def test_groups_of_weighted_rows_are_counted_as_what_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for weights, words in ((np.ones(400), "group   rows "), (RNG.random(400), "group   effective rows ")):
        rows = zip(RISK, DIED.astype(int), weights, "AB" * 200, strict=True)
        lines = [f"{p},{y},{w},{group}" for p, y, w, group in rows]
        (tmp_path / "a.csv").write_text("\n".join(["risk,label,weight,group", *lines]) + "\n")
        assert main(["measure", str(tmp_path / "a.csv"), "--groups", "group", "-q"]) == 0
        assert words in capsys.readouterr().out


def test_a_group_whose_event_happens_less_often_has_its_interval_on_that_side() -> None:
    p = np.full(2000, 0.5)
    y = np.r_[np.tile([1, 0], 500), np.tile([0, 0, 0, 1], 250)]
    found = calibrant.measure(y, p, groups=np.repeat(["a", "b"], 1000)).group_findings
    assert found is not None
    row = found.rows[1]
    words = f"happens {-row.gap:.3f} less often than was said (interval {-row.high:.3f} to {-row.low:.3f})"
    assert words in found.verdict
    assert row.high < 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "a.npz", "--methods", "fats"], "hint: did you mean fast?"),
        (["export", "m.calibrant", "-o", "m.xyz"], "seen: 'm.xyz'; allowed: onnx, torch, sql, json, vllm; or a path"),
        (["export", "m.calibrant", "-o", "m.sql", "--columns", "a,b,c"], "hint: name it: --table scores --keep id"),
    ],
)
def test_advice_is_in_words_of_the_command_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", logits=RNG.normal(size=(60, 3)), labels=np.arange(60) % 3)
    assert main(["fit", "a.npz", "--method", "ts", "-o", "m.calibrant", "-q"]) == 0
    capsys.readouterr()
    assert main(arguments) == 3
    assert said in capsys.readouterr().err


def test_inspect_has_no_row_for_columns_without_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", logits=RNG.normal(size=(60, 3)), labels=np.arange(60) % 3)
    assert main(["fit", "a.npz", "--method", "ts", "-o", "m.calibrant", "-q"]) == 0
    capsys.readouterr()
    assert main(["inspect", "m.calibrant"]) == 0
    told = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["classes", "0,", "1,", "2"] in told
    assert ["columns"] not in told


def test_apply_answers_all_rows_of_files_with_a_split_in_batches_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{p},{int(d)},{'val' if i % 2 else 'test'}" for i, (p, d) in enumerate(zip(RISK, DIED, strict=True))]
    Path("a.csv").write_text("\n".join(["risk,label,split", *rows]) + "\n")
    assert main(["fit", "a.csv", "--method", "ts", "-o", "m.calibrant", "-q"]) == 0
    assert main(["apply", "m.calibrant", "a.csv", "-o", "whole.csv", "-q"]) == 0
    Path("out").mkdir()
    assert main(["apply", "m.calibrant", "a*.csv", "-o", "out/", "-q"]) == 0
    assert Path("out/a.csv").read_text() == Path("whole.csv").read_text()
