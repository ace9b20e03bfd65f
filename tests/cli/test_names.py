"""Class names decide which column is which, in every command and format; a table keeps what it holds."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant import load
from calibrant.cli.main import main

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
NAMES = ["ant", "bee", "cat"]
P = np.random.default_rng(0).dirichlet([0.6, 0.3, 0.4], 300)
TRUE = np.random.default_rng(1).random((300, 1)) < np.cumsum(
    P**0.5 * [1, 4, 0.2] / (P**0.5 * [1, 4, 0.2]).sum(1)[:, None], 1
)
WORDS = np.array(NAMES)[TRUE.argmax(axis=1)]
TURNED = ["note", "p_cat", "id", "p_ant", "label", "p_bee"]


def _frame() -> Any:
    frame = pandas.DataFrame(P, columns=[f"p_{name}" for name in NAMES])
    frame.insert(0, "id", [f"r{i}" for i in range(300)])
    frame["label"], frame["note"] = WORDS, "a, b; c"
    return frame


def _write(frame: Any, path: Path) -> Path:
    {
        ".csv": lambda: frame.to_csv(path, index=False),
        ".gz": lambda: frame.to_csv(path, index=False),
        ".tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        ".parquet": lambda: frame.to_parquet(path, index=False),
        ".arrow": lambda: frame.to_feather(path),
        ".jsonl": lambda: frame.to_json(path, orient="records", lines=True, double_precision=15),
    }[path.suffix]()
    return path


def _read(path: Path) -> Any:
    readers = {".parquet": pandas.read_parquet, ".arrow": pandas.read_feather}
    if path.suffix in readers:
        return readers[path.suffix](path)
    if path.suffix == ".jsonl":
        return pandas.read_json(path, orient="records", lines=True)
    return pandas.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",")


@pytest.fixture
def saved(tmp_path: Path) -> str:
    path = tmp_path / "m.calibrant"
    assert main(["fit", str(_write(_frame(), tmp_path / "fit.csv")), "--method", "vector", "-o", str(path), "-q"]) == 0
    return str(path)


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.tsv", "x.parquet", "x.arrow", "x.jsonl"])
def test_a_table_keeps_its_columns_and_names_decide(name: str, saved: str, tmp_path: Path) -> None:
    frame = _frame()
    wanted = load(saved).predict_proba(P)
    for number, columns in enumerate((list(frame.columns), TURNED)):
        path = _write(frame[columns], tmp_path / f"{number}{name}")
        out = tmp_path / f"out{number}{name}"
        assert main(["apply", saved, str(path), "-o", str(out), "-q"]) == 0
        found = _read(out)
        own = [c.removeprefix("p_") for c in columns if c.startswith("p_")]
        assert list(found.columns) == [*columns, *(f"calibrated_{c}" for c in own)]
        assert found["id"].tolist() == frame["id"].tolist()
        assert found["note"].tolist() == frame["note"].tolist()
        for i, c in enumerate(NAMES):
            np.testing.assert_allclose(found[f"calibrated_{c}"], wanted[:, i], atol=1e-8)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow", "jsonl", "csv.gz", "npz"])
def test_one_format_becomes_another(ending: str, saved: str, tmp_path: Path) -> None:
    for begin in ("csv", "parquet", "jsonl"):
        path = _write(_frame()[TURNED], tmp_path / f"x.{begin}")
        out = tmp_path / f"out.{ending}"
        assert main(["apply", saved, str(path), "-o", str(out), "-q"]) == 0
        scores = [] if ending == "npz" else ["--scores", "calibrated_"]
        assert main(["measure", str(out), *scores, "--json"]) == 0
        if ending not in ("npz",):
            assert set(TURNED) < set(_read(out).columns)


def test_measure_and_compare_go_by_name(saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    straight, turned = _write(_frame(), tmp_path / "s.csv"), _write(_frame()[TURNED], tmp_path / "t.csv")
    losses = []
    for path in (straight, turned):
        assert main(["measure", str(path), "--calibrator", saved, "--json"]) == 0
        losses.append(json.loads(capsys.readouterr().out)["parts"][""]["metrics"]["nll"]["value"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    found = []
    for path in (straight, turned):
        assert main(["compare", str(straight), "--test", str(path), "--methods", "vector", "--json"]) == 0
        found.append([row["metrics"]["nll"]["value"] for row in json.loads(capsys.readouterr().out)["rows"]])
    assert found[0] == pytest.approx(found[1], rel=1e-9)


@pytest.mark.parametrize("method", ["fit", "compare"])
def test_a_map_of_a_file_knows_frames(method: str, tmp_path: Path) -> None:
    path, out = _write(_frame(), tmp_path / "s.parquet"), str(tmp_path / "m.calibrant")
    words = ["--method", "vector"] if method == "fit" else ["--methods", "vector"]
    assert main([method, str(path), *words, "-o", out, "-q"]) == 0
    fitted = load(out)
    assert fitted.feature_names_in_.tolist() == NAMES
    wanted = fitted.predict_proba(P)
    np.testing.assert_array_equal(fitted.predict_proba(_frame()[["p_cat", "p_ant", "p_bee"]]), wanted)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict_proba(_frame()[["p_cat", "p_ant", "p_bee"]].rename(columns={"p_cat": "p_fox"}))


def test_names_in_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", probs=P, labels=WORDS, classes=np.array(NAMES))
    np.savez(tmp_path / "b.npz", probs=P[:, [2, 0, 1]], labels=WORDS, classes=np.array(["cat", "ant", "bee"]))
    np.savez(tmp_path / "c.npz", probs=P)
    out = str(tmp_path / "m.calibrant")
    assert main(["fit", str(tmp_path / "a.npz"), "--method", "vector", "-o", out, "-q"]) == 0
    wanted = load(out).predict_proba(P)
    for name, order in (("a", [0, 1, 2]), ("b", [2, 0, 1]), ("c", [0, 1, 2])):
        assert main(["apply", out, str(tmp_path / f"{name}.npz"), "-o", str(tmp_path / "p.npz"), "-q"]) == 0
        np.testing.assert_allclose(np.load(tmp_path / "p.npz")["probs"], wanted[:, order])


def test_foreign_and_missing_classes_are_refused(
    saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = _frame().drop(columns="label").rename(columns={"p_cat": "p_fox"})
    path = str(_write(frame, tmp_path / "f.csv"))
    straight = str(tmp_path / "fit.csv")
    for words in (["apply", saved, path, "-o", str(tmp_path / "o.csv")], ["measure", path, "--calibrator", saved]):
        assert main(words) == 3
        assert "seen: fox; cat missing; allowed: ant, bee, cat" in capsys.readouterr().err
    assert not (tmp_path / "o.csv").exists()
    labelled = str(_write(frame.assign(label=np.where(WORDS == "cat", "fox", WORDS)), tmp_path / "g.csv"))
    assert main(["compare", straight, "--test", labelled, "--methods", "ts"]) == 3
    assert "g.csv names other classes than" in capsys.readouterr().err
    two = str(_write(frame.drop(columns="p_fox").assign(p_ant=0.5, p_bee=0.5), tmp_path / "h.csv"))
    assert main(["apply", saved, two, "-o", str(tmp_path / "o.csv")]) == 3
    assert "cat missing" in capsys.readouterr().err


def test_numbers_of_columns_that_moved_are_no_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = _frame().assign(label=[NAMES.index(word) for word in WORDS])
    straight, turned = str(_write(numbers, tmp_path / "s.csv")), str(_write(numbers[TURNED], tmp_path / "t.csv"))
    out = str(tmp_path / "m.calibrant")
    assert main(["fit", straight, "--method", "vector", "-o", out, "-q"]) == 0
    assert main(["apply", out, turned, "-o", str(tmp_path / "o.csv"), "-q"]) == 0  # the labels play no role
    measured = ["measure", turned, "--calibrator", out]
    for words in (measured, [*measured, "--memory", "200KB"], ["compare", straight, "--test", turned]):
        assert main([*words, "-q"]) == 3
        assert "what 0 means is not certain" in capsys.readouterr().err
    words = str(_write(_frame()[TURNED], tmp_path / "w.csv"))  # whose labels are words: nothing is uncertain
    told = []
    for memory in ([], ["--memory", "200KB"]):
        assert main(["measure", words, "--calibrator", out, "--json", "-q", *memory]) == 0
        told.append(json.loads(capsys.readouterr().out)["parts"][""]["metrics"]["accuracy"]["value"])
    assert told[0] == pytest.approx(told[1], abs=1e-9)


def test_an_event_keeps_its_column(tmp_path: Path) -> None:
    table = pandas.DataFrame({"who": "x", "risk": P[:, 0], "y": (WORDS == "ant").astype(int), "more": 1})
    path = str(_write(table, tmp_path / "e.csv"))
    names = ["--scores", "risk", "--kind", "probs"]
    assert main(["fit", path, *names, "--method", "beta", "-o", str(tmp_path / "m"), "-q"]) == 0
    assert main(["apply", str(tmp_path / "m"), path, *names, "-o", str(tmp_path / "o.csv"), "-q"]) == 0
    found = pandas.read_csv(tmp_path / "o.csv")
    assert list(found.columns) == ["who", "risk", "y", "more", "calibrated_risk"]
    np.testing.assert_allclose(found["calibrated_risk"], load(tmp_path / "m").predict_proba(P[:, 0])[:, 1])


def test_lists_of_scores_get_a_list(tmp_path: Path) -> None:
    rows = [
        {"id": i, "probs": p.tolist(), "label": int(y)} for i, (p, y) in enumerate(zip(P, TRUE.argmax(1), strict=True))
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["fit", str(tmp_path / "a.jsonl"), "--method", "ts", "-o", str(tmp_path / "m"), "-q"]) == 0
    assert main(["apply", str(tmp_path / "m"), str(tmp_path / "a.jsonl"), "-o", str(tmp_path / "o.jsonl"), "-q"]) == 0
    found = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert list(found[0]) == ["id", "probs", "label", "calibrated_probs"]
    np.testing.assert_allclose([row["calibrated_probs"] for row in found], load(tmp_path / "m").predict_proba(P))


def test_rows_of_a_split_stay_in_their_order(saved: str, tmp_path: Path) -> None:
    frame = _frame().assign(split=np.array(["train", "val", "test"])[np.arange(300) % 3])
    path = str(_write(frame, tmp_path / "s.csv"))
    assert main(["apply", saved, path, "-o", str(tmp_path / "o.csv"), "-q"]) == 0
    found = pandas.read_csv(tmp_path / "o.csv")
    assert found["id"].tolist() == frame["id"].tolist()
    np.testing.assert_allclose(found["calibrated_bee"], load(saved).predict_proba(P)[:, 1], rtol=1e-9)
    assert main(["apply", saved, path, "--part", "test", "-o", str(tmp_path / "o.csv"), "-q"]) == 0
    assert pandas.read_csv(tmp_path / "o.csv")["id"].tolist() == frame["id"].tolist()[2::3]


def test_cells_are_kept_as_they_are_written(saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text('id;p_bee;p_ant;p_cat;date\n007;0,50;0,250;0,25;"1;2"\n')
    assert main(["apply", saved, str(tmp_path / "a.csv"), "-o", str(tmp_path / "o.csv.gz"), "-q"]) == 0
    lines = list(csv.reader(gzip.decompress((tmp_path / "o.csv.gz").read_bytes()).decode().splitlines(), delimiter=";"))
    assert lines[0][5:] == ["calibrated_bee", "calibrated_ant", "calibrated_cat"]
    assert lines[1][:5] == ["007", "0,50", "0,250", "0,25", "1;2"]
    assert sum(float(cell.replace(",", ".")) for cell in lines[1][5:]) == pytest.approx(1)
    assert main(["apply", saved, str(tmp_path / "o.csv.gz"), "--scores", "p_*", "-o", str(tmp_path / "q.csv")]) == 3
    assert "a column calibrated_ant already; hint: choose another beginning of the new names with --prefix" in (
        capsys.readouterr().err
    )
    again = ["apply", saved, str(tmp_path / "o.csv.gz"), "--scores", "p_*", "--prefix", "q_", "-o", "-"]
    assert main(again) == 0
    assert main(["measure", str(tmp_path / "o.csv.gz")]) == 3  # which of the two is never guessed
    assert "several scores; seen: p_, calibrated_" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_columns_too_many_or_too_few_are_told_before_any_row_is_judged(
    ending: str, saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more, fewer = _frame().assign(p_fox=0.5), _frame().drop(columns="p_cat")
    for frame, seen in ((more, "fox"), (fewer, "cat missing")):
        if ending == "npz":
            path = tmp_path / "x.npz"
            np.savez(path, probs=frame[[c for c in frame.columns if c.startswith("p_")]].to_numpy())
            seen = "3 in the map"
        else:
            path = _write(frame, tmp_path / f"x.{ending}")
        for command in (
            ["apply", saved, str(path), "-o", str(tmp_path / "o.csv")],
            ["measure", str(path), "--calibrator", saved],
        ):
            assert main(command) == 3
            told = capsys.readouterr().err
            assert seen in told
            assert "distribution" not in told
    if ending != "npz":
        straight = _write(_frame(), tmp_path / f"s.{ending}")
        assert main(["compare", str(straight), "--test", str(_write(more, tmp_path / f"t.{ending}"))]) == 3
        assert "fox" in capsys.readouterr().err


def test_columns_called_like_the_classes_are_pointed_at(tmp_path: Path, capsys: Any) -> None:
    frame = _frame().rename(columns={f"p_{name}": name for name in NAMES})
    path = _write(frame, tmp_path / "rows.csv")
    assert main(["measure", str(path)]) == 3
    assert "pass --scores ant,bee,cat" in capsys.readouterr().err
    fitted = str(tmp_path / "m.calibrant")
    assert main(["fit", str(path), "--scores", "ant,bee,cat", "--kind", "probs", "--method", "ts", "-o", fitted]) == 0
    unlabelled = _write(frame.drop(columns="label"), tmp_path / "new.csv")
    assert main(["apply", fitted, str(unlabelled), "-o", str(tmp_path / "out.csv")]) == 3
    assert "pass --scores ant,bee,cat" in capsys.readouterr().err


def _judged(capsys: pytest.CaptureFixture[str], *words: str) -> float:
    capsys.readouterr()
    assert main(["measure", *words, "--json", "-q"]) == 0
    return json.loads(capsys.readouterr().out)["parts"][""]["metrics"]["nll"]["value"]


@pytest.mark.parametrize("spelt", ["p_{}", "P_{}", "p_{}.x"])
def test_names_decide_in_batches_through_a_map(
    spelt: str, saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Words as labels went by the alphabet there, whatever the columns were called."""
    names = ["soil", "bark", "ash"]
    frame = pandas.DataFrame(P, columns=[f"p_{name}" for name in names]).assign(label=np.array(names)[TRUE.argmax(1)])
    out = str(tmp_path / "words.calibrant")
    assert main(["fit", str(_write(frame, tmp_path / "a.csv")), "--method", "vector", "-o", out, "-q"]) == 0
    turned = frame[["p_ash", "label", "p_soil", "p_bark"]].rename(columns=lambda c: c.replace("p_", spelt[:2]))
    path = str(_write(turned, tmp_path / "b.csv"))
    wanted = _judged(capsys, str(tmp_path / "a.csv"), "--calibrator", out)
    assert _judged(capsys, path, "--calibrator", out) == pytest.approx(wanted, rel=1e-9)
    assert _judged(capsys, path, "--calibrator", out, "--memory", "1MB") == pytest.approx(wanted, rel=1e-6)


def test_labels_may_be_spelt_otherwise_than_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R makes red.soil of "red soil"; a list of columns has no prefix that is taken away."""
    names = ["red soil", "Bark", "ash"]
    labels = np.array(names)[TRUE.argmax(axis=1)]
    plain = pandas.DataFrame(P, columns=[f"p_{name}" for name in names]).assign(label=labels)
    wanted = _judged(capsys, str(_write(plain, tmp_path / "a.csv")))
    of_r = plain.rename(columns={"p_red soil": "p_red.soil", "p_Bark": "p_bark"})
    path = str(_write(of_r[["p_ash", "p_red.soil", "label", "p_bark"]], tmp_path / "b.csv"))
    assert _judged(capsys, path) == pytest.approx(wanted, rel=1e-9)
    assert _judged(capsys, str(tmp_path / "a.csv"), "--scores", "p_ash,p_red soil,p_Bark") == pytest.approx(wanted)
    known, some = str(tmp_path / "m.calibrant"), of_r[of_r["label"] != "ash"]
    assert main(["fit", str(tmp_path / "a.csv"), "--method", "identity", "-o", known, "-q"]) == 0
    assert main(["measure", str(_write(some, tmp_path / "c.csv"))]) == 3  # which class is ash no label tells
    assert "label outside the classes" in capsys.readouterr().err
    assert _judged(capsys, str(tmp_path / "c.csv"), "--calibrator", known) > 0
