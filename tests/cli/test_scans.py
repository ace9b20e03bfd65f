"""The command line on patterns of files, directories, pipes and what is larger than the memory allowed."""

import json
import os

import numpy as np
import pytest

import calibrant
from calibrant.cli.main import main
from calibrant.progress import pass_bar

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
GENERATOR = np.random.default_rng(0)
Z = (GENERATOR.normal(size=(3000, 4)) * 2).astype(np.float32)
Y = (0.6 * Z + GENERATOR.gumbel(size=Z.shape)).argmax(axis=1)


@pytest.fixture
def room(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for i, rows in enumerate(np.split(np.arange(3000), [1, 1000, 1000])):
        scores = pa.array(Z[rows].tolist(), type=pa.list_(pa.float32()))
        pq.write_table(pa.table({"id": rows, "label": Y[rows], "logits": scores}), f"part-{i}.parquet")
    np.savez("whole.npz", logits=Z, labels=Y)
    return tmp_path


def run(capfd, *words):
    code = main([*words, "--json"])
    told = capfd.readouterr().out
    return code, json.loads(told) if told else None


def test_fit_measure_and_apply_take_patterns(room, capfd):
    code, fitted = run(capfd, "fit", "part-*.parquet", "--scores", "logits", "--label", "label", "-o", "m.cal")
    assert (code, fitted["rows"], fitted["classes"]) == (0, 3000, 4)
    whole = calibrant.make("ets").fit(Z, Y)
    np.testing.assert_allclose(calibrant.load("m.cal").predict_proba(Z), whole.predict_proba(Z), atol=1e-6)
    code, found = run(capfd, "measure", "part-*.parquet", "--calibrator", "m.cal")
    exact = calibrant.measure(Y, whole.predict_proba(Z)).metrics["ece"].estimate
    assert found["parts"][""]["metrics"]["ece"]["value"] == pytest.approx(exact, abs=1e-5)
    code, done = run(capfd, "apply", "m.cal", "part-*.parquet", "--output", "out/")
    assert done["rows"] == {"all": 3000}
    assert sorted(os.listdir("out")) == [f"part-{i}.parquet" for i in range(4)]
    table = pq.read_table("out")
    assert table.column_names == ["id", "label", "logits", "calibrated_probs"]


def test_compare_states_its_sample(room, capfd, monkeypatch):
    monkeypatch.setattr("calibrant.selection.problem._COMPARED_ROWS", (500, 1000))
    code, found = run(capfd, "compare", "part-*.parquet", "--methods", "ts,vector", "-o", "c.cal")
    assert code == 0
    assert "a sample of 1,000 of 3,000 rows" in found["reason"]
    assert "a sample of 1,000 of 3,000 rows" in found["settings"]["judged_on"]
    assert calibrant.load("c.cal").n_samples_ == 3000


def test_what_is_larger_than_memory_is_read_in_batches(room, capfd, monkeypatch):
    for words in (["measure", "whole.npz"], ["fit", "whole.npz", "-o", "m.cal"]):
        code, found = run(capfd, *words, "--memory", "100KB")
        assert code == 0
        assert found.get("rows", 3000) == 3000
    pipe = room / "pipe.parquet"
    with (room / "part-3.parquet").open("rb") as file:
        monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": file})())
        code, found = run(capfd, "measure", "-", "--memory", "10KB")
    assert found["parts"][""]["rows"] == 2000
    os.mkfifo(pipe)
    with pytest.raises(calibrant.CalibrantError, match="can be read once"):
        calibrant.scan(pipe)


def test_what_is_wrong_is_said(room, capfd):
    assert main(["fit", "nothing-*.parquet", "-o", "m.cal"]) == 4
    assert "no file is like" in capfd.readouterr().err
    assert main(["fit", "part-*.parquet", "--memory", "much", "-o", "m.cal"]) == 3
    assert "500MB" in capfd.readouterr().err
    calibrant.make("ts").fit(Z, Y).save("m.cal")
    assert main(["apply", "m.cal", "part-*.parquet", "-o", "."]) == 4
    assert "holds the files that are read" in capfd.readouterr().err
    os.mkdir("out")
    (room / "out" / "notes.txt").write_text("keep me")
    assert main(["apply", "m.cal", "part-*.parquet", "-o", "out"]) == 4
    assert (room / "out" / "notes.txt").read_text() == "keep me"
    np.savez("bare.npz", scores=Z, labels=Y)
    assert main(["measure", "bare.npz", "--memory", "10KB"]) == 3
    assert "--kind logits" in capfd.readouterr().err


def test_the_bar_says_pass_and_rows(monkeypatch, capsys):
    with pass_bar("fitting", after=0.0) as advance:
        advance(1, 500, None)
    assert capsys.readouterr().err == ""  # no terminal, no bar
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with pass_bar("fitting", after=0.0) as advance:
        advance(2, 12_500, 50_000)
        advance(2, 25_000, 50_000)
    told = capsys.readouterr().err
    assert "pass 2" in told
    assert "25,000 rows" in told
