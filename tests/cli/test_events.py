"""Which label is the event, and labels that are not known, on the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant import load
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


PROBABLE = np.clip(RISK, 0.01, 0.99)


def _table_of(path: Path, column: str, *, labelled: bool = True) -> str:
    p = 1 - PROBABLE if column.endswith("well") else PROBABLE
    lines = [f"{v:.4f},{label}" if labelled else f"{v:.4f}" for v, label in zip(p, WORDS, strict=True)]
    path.write_text("\n".join([f"{column},outcome" if labelled else column, *lines]) + "\n")
    return str(path)


@pytest.mark.parametrize("memory", [[], ["--memory", "2KB"]])
@pytest.mark.parametrize("labelled", [True, False])
def test_a_map_remembers_whose_score_its_column_was(labelled: bool, memory: list[str], tmp_path: Path) -> None:
    saved, answers = str(tmp_path / "m.calibrant"), {}
    fitted_on = _table_of(tmp_path / "fit.csv", "p_sick")
    assert main(["fit", fitted_on, "--labels", "outcome", "--method", "platt", "-o", saved, "-q"]) == 0
    assert load(saved).classes_.tolist() == ["well", "sick"]
    for column in ("p_sick", "p_well", "risk"):
        path = _table_of(tmp_path / f"{column}.csv", column, labelled=labelled)
        out = tmp_path / f"out_{column}.csv"
        assert main(["apply", saved, path, "-o", str(out), "-q", *memory]) == 0
        header, *rows = out.read_text().splitlines()
        place = header.split(",").index(f"calibrated_{column}")
        answers[column] = np.array([float(row.split(",")[place]) for row in rows])
    np.testing.assert_allclose(answers["p_sick"], answers["risk"], rtol=1e-9)
    np.testing.assert_allclose(answers["p_sick"], 1 - answers["p_well"], rtol=1e-9)


@pytest.mark.parametrize("memory", [[], ["--memory", "2KB"]])
def test_files_are_judged_by_the_event_that_they_or_the_map_name(
    memory: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = {column: _table_of(tmp_path / f"{column}.csv", column) for column in ("p_sick", "p_well", "risk")}
    saved, found = str(tmp_path / "m.calibrant"), {}
    assert main(["fit", paths["p_sick"], "--labels", "outcome", "--method", "platt", "-o", saved, "-q"]) == 0
    capsys.readouterr()
    for column, path in paths.items():
        assert main(["measure", path, "--labels", "outcome", "--calibrator", saved, "--json", *memory]) == 0
        told = capsys.readouterr()
        assert "--event" not in told.err
        found[column] = json.loads(told.out)["parts"][""]["metrics"]
    assert len({round(f["brier"]["value"], 9) for f in found.values()}) == 1
    rates = [found[column]["event_rate"]["value"] for column in paths]
    assert rates == pytest.approx([SICK.mean(), 1 - SICK.mean(), SICK.mean()])


def test_a_test_file_and_a_watched_one_may_have_the_score_of_the_other_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sick, well = (_table_of(tmp_path / f"{c}.csv", c) for c in ("p_sick", "p_well"))
    options = ["--labels", "outcome", "--json", "-q"]
    losses = []
    for other in (sick, well):
        assert main(["compare", sick, "--test", other, "--methods", "platt", *options]) == 0
        losses.append(json.loads(capsys.readouterr().out)["rows"][0]["metrics"]["nll"]["value"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    gaps = []
    for other in (sick, well):
        state = str(tmp_path / f"{len(gaps)}.json")
        assert main(["watch", state, sick, *options]) == 0
        capsys.readouterr()
        assert main(["watch", state, other, "--again", *options]) == 0
        gaps.append(json.loads(capsys.readouterr().out)["streams"][0]["gap"])
    assert gaps[0] == pytest.approx(gaps[1], rel=1e-6)


def test_a_column_that_names_the_event_behind_it_is_read_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for column in ("sick_prob", "sick"):
        path = _table_of(tmp_path / "a.csv", column)
        assert _rate(capsys, path, "--scores", column, "--kind", "probs") == pytest.approx(SICK.mean())


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("column", ["risk", "p_sick", "p_well"])
def test_a_map_knows_the_labels_that_rows_lack(
    batches: bool, column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A day without a sick patient was refused; of labels 1 and 2, a day of ones was one of twos, without a word."""
    own = ["--labels", "outcome", "--kind", "probs", "--scores", column]
    for labels, event in ((WORDS, "sick"), (np.where(SICK, 2, 1), "2")):
        told = ["--event", event] * (column == "risk")
        fit = _table(tmp_path / "fit.csv", labels, column)
        saved = str(tmp_path / "map.calibrant")
        assert main(["fit", fit, *own, *told, "--method", "ts", "-o", saved, "-q"]) == 0
        for happened in (False, True):
            kept = labels[happened == SICK]
            path = _table(tmp_path / "day.csv", np.resize(kept, len(RISK)), column)
            path = path.replace("day.csv", "da*.csv") if batches else path
            capsys.readouterr()
            found = _rate(capsys, path, "--scores", column, "--kind", "probs", *told, "--calibrator", saved)
            of_other = column == "p_well" and event == "sick"  # whose probability is told is whose rate it is
            assert found == float(happened != of_other)


def test_batches_through_a_map_know_their_event_among_several_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "map.calibrant")
    fit = _table(tmp_path / "fit.csv", WORDS, "p_sick")
    assert main(["fit", fit, "--labels", "outcome", "--method", "ts", "-o", saved, "-q"]) == 0
    several = np.where(SICK, "sick", np.where(RISK > 0.1, "well", "cold"))
    path = _table(tmp_path / "new.csv", several, "p_sick")
    capsys.readouterr()
    for one in (path, path.replace("new.csv", "ne*.csv")):
        for told, rate in ([], SICK.mean()), (["--event", "cold"], (several == "cold").mean()):
            assert _rate(capsys, one, "--calibrator", saved, *told) == pytest.approx(rate)
    pattern = path.replace("new.csv", "ne*.csv")
    assert _rate(capsys, pattern, "--event", "sick", "--calibrator", saved) == pytest.approx(SICK.mean())


@pytest.mark.parametrize("memory", [[], ["--batches"]])
def test_a_told_event_that_no_row_has_never_happened(
    memory: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _table(tmp_path / "day.csv", ["well"] * 300)
    path = path.replace("day.csv", "da*.csv") if memory else path
    assert _rate(capsys, path, "--event", "sick") == 0


def test_a_state_knows_the_labels_that_a_day_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state, own = str(tmp_path / "s.json"), ["--labels", "outcome", "--json", "-q"]
    assert main(["watch", state, _table(tmp_path / "a.csv", WORDS, "p_sick"), *own]) == 0
    capsys.readouterr()
    for name, told in ("b", []), ("c", ["--event", "sick"]):
        path = _table(tmp_path / f"{name}.csv", ["well"] * (300 - (name == "c")) + ["well"] * (name == "c"), "p_sick")
        assert main(["watch", state, path, *own, *told, "--again"]) == 0
        seen = json.loads(capsys.readouterr().out)["streams"][0]
    assert (seen["rows"], seen["observed"]) == (900, SICK.sum())
    foreign = _table(tmp_path / "d.csv", np.where(SICK, "ill", "fine"), "risk")
    assert main(["watch", state, foreign, *own]) == 3
    told = capsys.readouterr().err
    assert "d.csv has other labels than the state; seen: fine, ill; allowed: well, sick" in told


def test_a_map_knows_the_classes_of_an_array_whose_last_class_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels 1 to 3 without a 3 were taken for columns 1 and 2 of 0 to 2."""
    z, y = RNG.normal(size=(300, 3)), RNG.integers(1, 4, 300)
    z[np.arange(300), y - 1] += 9
    np.savez(tmp_path / "fit.npz", logits=z, labels=y)
    np.savez(tmp_path / "day.npz", logits=z[y < 3], labels=y[y < 3])
    saved = str(tmp_path / "map.calibrant")
    assert main(["fit", str(tmp_path / "fit.npz"), "--method", "ts", "-o", saved, "-q"]) == 0
    capsys.readouterr()
    for name in ("day.npz", "da*.npz"):
        assert main(["measure", str(tmp_path / name), "--calibrator", saved, "--json", "-q"]) == 0
        assert json.loads(capsys.readouterr().out)["parts"][""]["metrics"]["accuracy"]["value"] > 0.99
