"""``calibrant watch``: makes and resumes a state, takes batches, gates, refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

from calibrant.cli.main import main
from calibrant.monitoring import Monitor


def write(path, seed, factor=1.0, days=6, rows=60):
    rng = np.random.default_rng(seed)
    lines = ["day,site,prob,y"]
    for day in range(days):
        p = rng.beta(2, 5, rows).round(4)
        y = rng.random(rows) < factor * p / (factor * p + 1 - p)
        lines += [f"d{seed}-{day},{rng.choice(['A', 'B'])},{a},{int(b)}" for a, b in zip(p, y, strict=True)]
    path.write_text("\n".join(lines))
    return str(path)


@pytest.fixture
def state(tmp_path):
    return str(tmp_path / "state.json")


def told(capsys):
    return json.loads(capsys.readouterr().out)


def test_files_are_fed_one_by_one_and_an_alarm_is_a_gate(state, tmp_path, capsys):
    calm, bad = write(tmp_path / "calm.csv", 1), write(tmp_path / "bad.csv", 2, 0.3)
    assert main(["watch", state, calm, "--batch", "day", "--fail-if", "alarm", "--json"]) == 0
    found = told(capsys)
    assert (found["created"], found["batches_added"], found["alarm"]) == (True, 6, False)
    assert main(["watch", state, bad, "--batch", "day", "--fail-if", "alarm", "--fail-if", "p<0.05", "--json"]) == 1
    found = told(capsys)
    assert (found["created"], found["batches"], found["alarm"]) == (False, 12, True)
    assert found["alarmed"]["label"].startswith("d2-")
    assert len(found["failed"]) == 2
    assert main(["watch", state]) == 0
    shown = capsys.readouterr()
    assert "Alarm in batch d2-" in shown.out
    again = Monitor.load(state)
    assert again.alarm
    assert main(["watch", state, "--restart", "--json"]) == 0
    assert told(capsys)["batches"] == 0


def test_what_the_command_feeds_is_what_python_feeds(state, tmp_path, capsys):
    path = write(tmp_path / "a.csv", 3)
    assert main(["watch", state, path, "--batch-rows", "50", "--groups", "site", "--json"]) == 0
    assert told(capsys)["batches"] == 8
    table = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
    monitor = Monitor()
    for i in range(0, 360, 50):
        part = table[i : i + 50]
        monitor.update(part["y"], part["prob"], groups=part["site"], label=f"a-{i // 50 + 1}")
    got, wanted = Monitor.load(state).findings(), monitor.findings()
    assert got.verdict == wanted.verdict
    for one, other in zip(got.streams, wanted.streams, strict=True):
        assert (one.name, one.rows, one.observed, one.share) == (other.name, other.rows, other.observed, other.share)
        assert other.log_e - 0.008 <= one.log_e <= other.log_e + 1e-6  # .001 for each of eight times it was saved


def test_page_and_picture_are_written(state, tmp_path):
    path, page, picture = write(tmp_path / "a.csv", 3), tmp_path / "w.html", tmp_path / "w.png"
    assert main(["watch", state, path, "--report", str(page), "--picture", str(picture), "--quiet"]) == 0
    assert "Calibration watch" in page.read_text()
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert main(["watch", state, "--report", str(page), "--quiet"]) == 0
    assert f"calibrant watch {state} --report" in page.read_text()


def test_a_picture_of_another_kind_is_refused_before_anything_is_written(state, tmp_path, capsys):
    path = write(tmp_path / "a.csv", 3)
    assert main(["watch", state, path, "--picture", str(tmp_path / "w.xyz")]) == 2
    assert "a picture ends in .png, .svg, .pdf" in capsys.readouterr().err
    assert not Path(state).exists()


def test_classes_are_put_into_order_by_name(state, tmp_path, capsys):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 200)
    y = np.array(["ant", "bee", "cat"])[(p.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)]
    for name, order in (("one", [0, 1, 2]), ("two", [2, 0, 1])):
        names = [["p_ant", "p_bee", "p_cat"][k] for k in order]
        rows = [",".join([*(f"{v:.6f}" for v in row[order]), label]) for row, label in zip(p, y, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join([",".join([*names, "label"]), *rows]))
        assert main(["watch", state, str(tmp_path / f"{name}.csv"), "--json"]) == 0
    found = told_last(capsys)
    assert {s["name"] for s in found["streams"]} == {"all rows", "class ant", "class bee", "class cat"}
    assert not found["alarm"]
    monitor = Monitor.load(state).findings()
    assert monitor.streams[0].observed == 2 * (np.array(["ant", "bee", "cat"])[p.argmax(axis=1)] == y).sum()


def told_last(capsys):
    text = capsys.readouterr().out
    return json.loads(text[text.rindex('{\n  "format"') :])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["FILE"], 3, "fed to this monitor before"),
        (["FILE", "--again", "--alpha", "0.1"], 3, "another --alpha"),
        (["FILE", "--again", "--batch", "x"], 3, "no column"),
        (["FILE", "--again", "--batch", "day", "--batch-rows", "5"], 2, "exclude"),
        (["FILE", "--again", "--fail-if", "foo > 1"], 2, "hint: gap can have .low and .high"),
        (["FILE", "--again", "--fail-if", "foo"], 2, "such as alarm"),
        (["FILE", "--again", "--groups", "site"], 3, "groups must be given"),
        (["missing.csv"], 4, "missing.csv"),
    ],
)
def test_refusals_leave_the_state_alone(arguments, code, words, state, tmp_path, capsys):
    path = write(tmp_path / "a.csv", 3)
    assert main(["watch", state, path]) == 0
    before = Path(state).read_bytes()
    assert main(["watch", state, *(path if word == "FILE" else word for word in arguments)]) == code
    assert words in capsys.readouterr().err
    assert Path(state).read_bytes() == before


def test_no_state_and_no_file_and_foreign_states_are_refused(state, tmp_path, capsys):
    assert main(["watch", state]) == 2
    (tmp_path / "state.json").write_text("{}")
    assert main(["watch", state]) == 4
    assert "no saved monitor" in capsys.readouterr().err


def test_a_state_that_another_run_changed_is_not_overwritten(state, tmp_path, monkeypatch, capsys):
    path, other = write(tmp_path / "a.csv", 3), write(tmp_path / "b.csv", 4)
    assert main(["watch", state, path]) == 0
    from calibrant.cli import watching

    whole = watching.feed

    def slow(*arguments):
        monitor = Monitor.load(state).update([1], [0.5])
        monitor.save(state)
        return whole(*arguments)

    monkeypatch.setattr(watching, "feed", slow)
    assert main(["watch", state, other]) == 4
    assert "another run" in capsys.readouterr().err
    assert Monitor.load(state).batches == 2


@pytest.mark.parametrize("named", ["--groups", "--batch"])
def test_names_that_no_state_could_be_read_with_are_refused(named, state, tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text(f"prob,y,who\n0.3,1,{'x' * 70_000}\n0.4,0,b\n")
    assert main(["watch", state, str(path), named, "who"]) == 3
    assert "too long to be watched" in capsys.readouterr().err
    assert not (tmp_path / "state.json").exists()
