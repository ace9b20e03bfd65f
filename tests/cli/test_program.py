"""The program as a whole: help, errors, exit codes, streams."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import overconfident

from calibrant.cli.main import COMMANDS, main, program


@pytest.fixture
def file(tmp_path: Path) -> Path:
    z, y = overconfident(400, 4)
    np.savez(tmp_path / "a.npz", logits_val=z[:200], labels_val=y[:200], logits_test=z[200:], labels_test=y[200:])
    return tmp_path / "a.npz"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from calibrant.cli.main import main; main(['--help']); "
        "print([m for m in ('numpy', 'sklearn', 'scipy', 'rich', 'matplotlib', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


def test_measuring_starts_without_what_is_slow_to_load(file: Path) -> None:
    code = (
        f"import sys; from calibrant.cli.main import main; main(['measure', {str(file)!r}]); "
        "print([m for m in ('sklearn', 'pandas', 'matplotlib', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_and_the_listed_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert COMMANDS[name] in shown
    command = program.get_command(None, name)
    assert command is not None
    assert command.name == name
    for option in ("--json", "--seed", "--threads", "--quiet", "--debug"):
        assert option in shown


def test_no_arguments_show_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Commands:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["mesure"], 2, "did you mean measure"),
        (["measure"], 2, "Missing argument"),
        (["measure", "a.npz", "--fial-if", "x"], 2, "--fail-if"),
        (["measure", "none.npz"], 4, "none.npz"),
        (["measure", "{file}", "--fail-if", "ece"], 2, "not a rule"),
        (["measure", "{file}", "--fail-if", "ece > much"], 2, "not a rule"),
        (["measure", "{file}", "--fail-if", "beauty > 0"], 2, "allowed: accuracy"),
        (["measure", "{file}", "-q", "--fail-if", "ece > 0"], 1, "gate failed"),
        (["measure", "{file}", "-q", "--fail-if", "ece > 0.9", "--fail-if", "accuracy < 0.1"], 0, ""),
        (["measure", "{file}", "--kind", "probs"], 3, "--kind says"),
        (["measure", "{file}", "--kind", "odds"], 2, "odds"),
        (["measure", "{file}", "--part", "x"], 3, "no part"),
        (["measure", "{file}", "--threads", "0"], 2, "--threads"),
        (["fit", "{file}", "--method", "no-such", "-o", "{dir}/m"], 3, "no map has this name"),
        (["fit", "{file}", "--method", "ts", "--set", "loss", "-o", "{dir}/m"], 2, "NAME=VALUE"),
        (["fit", "{file}", "--method", "ts", "--set", "loss=fun", "-o", "{dir}/m"], 3, "loss"),
        (["fit", "{file}", "--method", "ts", "-o", "{dir}/none/m"], 4, "no directory"),
        (["fit", "{file}", "--method", "ts"], 2, "--output"),
        (["fit", "{file}", "--method", "ts", "-o", "-", "--json"], 2, "standard output"),
        (["fit", "{file}", "--method", "etts", "-o", "{dir}/m"], 3, "did you mean ets?"),
        (["report", "{file}", "-o", "{dir}/none/r.html"], 4, "no directory"),
        (["demo", "-o", "{dir}/none/r.html"], 4, "no directory"),
        (["apply", "{file}", "{file}", "-o", "{dir}/p.npz"], 4, "saved calibrator"),
        (["inspect", "{dir}"], 4, "directory"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str], code: int, words: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [a.format(file=file, dir=file.parent) for a in arguments]
    before = sorted(file.parent.iterdir())
    assert main(filled) == code
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.count("\n") <= 1
    assert "Traceback" not in captured.err
    assert sorted(file.parent.iterdir()) == before


def test_a_fault_of_ours_is_70(file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("oh")

    monkeypatch.setattr("calibrant.files.read", broken)
    assert main(["measure", str(file)]) == 70
    assert "report it" in capsys.readouterr().err
    assert main(["measure", str(file), "--debug"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_interruption_is_130(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("calibrant.files.read", stopped)
    assert main(["measure", str(file)]) == 130


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_comparison_fits_the_terminal(
    width: int, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("calibrant.cli.output.table_width", lambda: width)
    monkeypatch.setattr("calibrant.cli.commands.compare.table_width", lambda: width)
    assert main(["compare", str(file), "--methods", "scaling-binning,ts", "-q"]) == 0
    shown = capsys.readouterr().out
    table, recommendation = shown.strip().rsplit("\n\n", 1)
    assert "…" not in table
    assert max(len(line) for line in table.splitlines()) <= width
    assert "ts has the lowest held-out nll" in " ".join(recommendation.split())
    assert ("cwece" in shown, "accuracy" in shown) == (width > 80, True)


def test_groups_of_a_file_are_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    z, y = overconfident(120, 3)
    groups = np.arange(120) // 3
    np.savez(tmp_path / "g.npz", logits=z, labels=y, groups=groups)
    assert main(["compare", str(tmp_path / "g.npz"), "--methods", "ts", "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["groups"] == 40
    assert main(["compare", str(tmp_path / "g.npz"), "--methods", "ts", "--cv", "50"]) == 3
    assert "40 groups" in capsys.readouterr().err
    assert main(["measure", str(tmp_path / "g.npz")]) == 0
    assert "dependent on each other" in capsys.readouterr().err
    assert main(["measure", str(tmp_path / "g.npz"), "--json", "-q"]) == 0
    clustered = json.loads(capsys.readouterr().out)["parts"][""]["metrics"]["brier"]
    plain = np.load(tmp_path / "g.npz")
    np.savez(
        tmp_path / "p.npz", logits=plain["logits"], labels=plain["labels"], clusters=plain["groups"], site=groups % 2
    )
    assert main(["measure", str(tmp_path / "p.npz"), "--groups", "site", "--profile", "risk", "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)["parts"][""]
    assert [row["name"] for row in found["groups"]["rows"]] == ["0", "1"]
    assert found["profile"] == "risk"
    assert found["metrics"]["brier"]["low"] == clustered["low"]
    assert main(["report", str(tmp_path / "p.npz"), "--profile", "risk", "-q", "-o", str(tmp_path / "risk.html")]) == 0
    assert "TRIPOD" in (tmp_path / "risk.html").read_text()
    capsys.readouterr()
    half = {"logits_val": z[:60], "labels_val": y[:60], "groups_val": groups[:60]}
    half |= {"logits_test": z[60:], "labels_test": y[60:], "groups_test": groups[59:119]}
    np.savez(tmp_path / "s.npz", **half)
    page = tmp_path / "r.html"
    assert main(["report", str(tmp_path / "s.npz"), "--methods", "ts", "-o", str(page)]) == 0
    assert "1 groups have rows in both parts" in page.read_text()


def test_clusters_are_kept_together_where_maps_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    z, y = overconfident(120, 3)
    np.savez(tmp_path / "c.npz", logits=z, labels=y, patients=np.arange(120) // 3, wards=np.arange(120) % 3)
    path, out = str(tmp_path / "c.npz"), str(tmp_path / "m.calibrant")
    assert main(["compare", path, "--clusters", "patients", "--methods", "ts", "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["groups"] == 40
    assert main(["compare", path, "--clusters", "patients", "--methods", "fast", "--json", "-q"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert main(["fit", path, "--clusters", "patients", "--set", "methods=fast", "-o", out, "--json", "-q"]) == 0
    fitted = json.loads(capsys.readouterr().out)
    assert (fitted["chosen"], fitted["reason"]) == (compared["best"], compared["reason"])
    assert main(["fit", path, "--groups", "wards", "--set", "methods=fast", "-o", out, "-q"]) == 0  # three folds
    assert main(["watch", str(tmp_path / "w.json"), path, "--clusters", "patients"]) == 2
    assert "watch takes no --clusters" in capsys.readouterr().err
    rows = [f"{0.2 + 0.2 * (i % 4)},{int(y[i] > 0)},{'val' if i < 60 else 'test'},{i % 2}" for i in range(120)]
    (tmp_path / "s.csv").write_text("prob,label,split,site\n" + "\n".join(rows))
    page = tmp_path / "page.html"
    for words, told in ((["--profile", "risk"], False), (["--methods", "ts"], True)):
        assert main(["report", str(tmp_path / "s.csv"), "--groups", "site", *words, "-q", "-o", str(page)]) == 0
        assert ("2 groups have rows in both parts" in page.read_text()) == told  # parts to look at, or what depends


def test_fit_apply_inspect_measure(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = file.parent
    assert main(["fit", str(file), "--method", "ts", "-o", str(where / "m.calibrant")]) == 0
    captured = capsys.readouterr()
    assert "nll" in captured.out
    assert "saved to" in captured.err
    assert main(["inspect", str(where / "m.calibrant"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["map"] == "TemperatureScaling()"
    assert told["fitted_on_rows"] == 200
    for ending in ("npz", "csv", "tsv", "parquet"):
        out = where / f"p.{ending}"
        assert main(["apply", str(where / "m.calibrant"), str(file), "-o", str(out), "-q"]) == 0
        assert capsys.readouterr().err == ""
        assert main(["measure", str(out), "--json"]) == 0
        after = json.loads(capsys.readouterr().out)["parts"]["test"]["metrics"]
        assert main(["measure", str(file), "--calibrator", str(where / "m.calibrant"), "--json"]) == 0
        same = json.loads(capsys.readouterr().out)["parts"]["test"]["metrics"]
        assert after["nll"]["value"] == pytest.approx(same["nll"]["value"], rel=1e-6)


def test_compare_and_save_the_choice(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = file.parent / "best.calibrant"
    assert main(["compare", str(file), "--methods", "ts,platt", "-o", str(out), "--sizes", "20,100"]) == 0
    captured = capsys.readouterr()
    assert "→ ts" in captured.out
    assert "lowest" in captured.out
    assert captured.err.splitlines() == [f"saved ts to {out}"]
    assert out.exists()
    assert main(["compare", str(file), "--methods", "ts", "--cv", "3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["settings"]["judged_on"] == "3 folds"
    assert main(["compare", str(file), "--methods", "ts", "--test", str(file), "--part", "val", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["judged_rows"] == 200
    assert main(["compare", str(file), "--methods", "no-such"]) == 3
    assert main(["compare", str(file), "--sizes", "few"]) == 2


def test_report_and_demo(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = file.parent / "r.html"
    assert main(["report", str(file), "--methods", "ts", "-o", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"] == "ts"
    text = out.read_text(encoding="utf-8")
    assert "calibrant report" in text
    assert "--methods ts" in text
    assert main(["demo", "-o", str(file.parent / "d.html")]) == 0
    captured = capsys.readouterr()
    assert "identity" in captured.out
    assert "d.html" in captured.err
    assert (file.parent / "d.html").stat().st_size > 10_000


def test_simulate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["scenarios"]) == 10
    arguments = ["simulate", "resnet110_c10", "--rows", "100,200", "--bins", "5,15", "--repeats", "20"]
    assert main([*arguments, "--json"]) == 0
    first = capsys.readouterr().out
    assert np.shape(json.loads(first)["bias"]) == (2, 2)
    assert main([*arguments, "--json"]) == 0
    assert capsys.readouterr().out == first
    assert main(arguments) == 0
    assert main(["simulate", "no-such"]) == 2
    assert main(["simulate", "resnet110_c10", "--estimator", "guess"]) == 3


def test_json_is_one_versioned_object(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["methods"], ["measure", str(file)], ["inspect", str(file)]):
        assert main([*arguments, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["format"] == 1
        assert told["command"] == arguments[0]


def test_standard_streams(file: Path) -> None:
    run = [sys.executable, "-m", "calibrant"]
    fitted = subprocess.run(
        [*run, "fit", "-", "--method", "ts", "-o", "-"], input=file.read_bytes(), capture_output=True
    )
    assert fitted.returncode == 0
    (file.parent / "m.calibrant").write_bytes(fitted.stdout)
    done = subprocess.run(
        [*run, "apply", str(file.parent / "m.calibrant"), "-", "-o", "-"], input=file.read_bytes(), capture_output=True
    )
    assert done.returncode == 0
    assert done.stdout.startswith(b"prob_0,prob_1,prob_2,prob_3,label,split\n")
    assert done.stdout.count(b"\n") == 401


def test_completion_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--completion", "bash"]) == 0
    assert "_CALIBRANT_COMPLETE=bash_complete" in capsys.readouterr().out
    assert main(["--version"]) == 0


def test_warnings_are_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    z, y = overconfident(12, 3)
    np.savez(tmp_path / "a.npz", logits=z, labels=y)
    arguments = ["fit", str(tmp_path / "a.npz"), "--method", "platt", "-o", str(tmp_path / "m")]
    assert main(arguments) == 0
    assert "warning: " in capsys.readouterr().err
    assert main([*arguments, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_a_fit_without_a_method_is_the_choice_and_says_why(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", str(file), "-o", str(tmp_path / "m"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["method"] == "auto"
    assert found["chosen"] in found["reason"]


def test_a_missing_output_is_explained(file: Path, capsys) -> None:
    assert main(["fit", str(file)]) == 2
    assert "such as map.calibrant" in capsys.readouterr().err


def test_percentages_are_answered_by_fractions_and_that_is_said(tmp_path: Path, capsys) -> None:
    rows = ["p_a,p_b,label", *(f"{20 + i % 60},{80 - i % 60},{'ab'[i % 2]}" for i in range(120))]
    (tmp_path / "p.csv").write_text("\n".join(rows))
    at = [str(tmp_path / name) for name in ("p.csv", "m.calibrant", "out.csv")]
    assert main(["fit", at[0], "--percent", "--method", "ts", "-o", at[1], "-q"]) == 0
    assert main(["apply", at[1], at[0], "--percent", "-o", at[2]]) == 0
    assert "fractions from 0 to 1" in capsys.readouterr().err
    assert 0 < float((tmp_path / "out.csv").read_text().splitlines()[1].split(",")[-1]) < 1


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("in_batches", [False, True])
def test_apply_keeps_line_ends_and_the_mark_of_a_spreadsheet(
    tmp_path: Path, mark: str, end: str, in_batches: bool
) -> None:
    rows = ["p_a,p_b,label", *(f"{20 + i % 60},{80 - i % 60},{'ab'[i % 2]}" for i in range(120))]
    (tmp_path / "p.csv").write_bytes((mark + end.join(rows) + end).encode())
    at = [str(tmp_path / name) for name in ("p.csv", "m.calibrant", "out.csv")]
    assert main(["fit", at[0], "--percent", "--method", "ts", "-o", at[1], "-q"]) == 0
    memory = ["--memory", "1MB"] if in_batches else []
    source = str(tmp_path / "p*.csv") if in_batches else at[0]
    assert main(["apply", at[1], source, "--percent", "-o", at[2], "-q", *memory]) == 0
    out = Path(at[2]) if Path(at[2]).is_file() else next(Path(at[2]).iterdir())
    written = out.read_bytes().decode()
    assert written.startswith(f"{mark}p_a,p_b,label,calibrated_a,calibrated_b{end}")
    assert written.count(end) == len(rows) == written.count("\n")
    assert written.count("\ufeff") == len(mark)
    assert written.removeprefix(mark).split(end)[1].startswith(rows[1])


def test_a_mark_before_lines_of_json_is_no_part_of_them(tmp_path: Path) -> None:
    lines = [json.dumps({"probs": [0.2 + i % 6 / 10, 0.8 - i % 6 / 10], "label": i % 2}) for i in range(60)]
    (tmp_path / "p.jsonl").write_bytes(("\ufeff" + "\n".join(lines)).encode())
    assert main(["fit", str(tmp_path / "p.jsonl"), "--method", "ts", "-o", str(tmp_path / "m"), "-q"]) == 0
