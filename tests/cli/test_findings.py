"""What a new user sees: findings on standard output that fit 80 columns, commands that reproduce, advice in options."""

import ast
import html
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import overconfident

import calibrant
from calibrant.cli.gates import check_gates, parse_gates
from calibrant.cli.hints import in_options
from calibrant.cli.main import main
from calibrant.cli.output import number

Z, Y = overconfident(300, 3)
P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
TRAPS = {"table_width": "calibrant.cli.output.table_width", "compare": "calibrant.cli.commands.compare.table_width"}


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> int:
    for place in TRAPS.values():
        monkeypatch.setattr(place, lambda: 80)
    return 80


def _save(path: Path, **arrays: object) -> str:
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return str(path)


def test_measure_shows_its_numbers_whatever_the_name(
    narrow: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _save(tmp_path / ("a" * 120 + ".npz"), logits=Z, labels=Y)
    assert main(["measure", file]) == 0
    captured = capsys.readouterr()
    first, *lines = captured.out.splitlines()
    assert first == f"{file}: 300 rows, 3 classes"
    assert "…" not in captured.out
    assert any(re.fullmatch(r"ece +1 +0\.\d{4} +\[0\.\d{4}, 0\.\d{4}\].*", line) for line in lines)
    assert captured.out.rstrip().splitlines()[-1].startswith("Miscalibrated (p ≤ 0.001)")
    assert captured.err == ""
    assert main(["measure", file, "-q"]) == 0
    assert "Miscalibrated" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["methods"], ["compare", "{file}", "--methods", "ts,platt", "--sizes", "{sizes}"]])
def test_tables_fit_80_columns(
    words: list[str], narrow: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _save(tmp_path / "a.npz", logits=Z, labels=Y)
    sizes = ",".join(str(size) for size in range(20, 241, 20))
    assert main([word.format(file=file, sizes=sizes) for word in words]) == 0
    table = capsys.readouterr().out.rsplit("\n\n", 1)[0]
    assert max(len(line) for line in table.splitlines()) <= narrow
    if words[0] == "compare":
        curve = table.split("by rows to fit on")[1]
        assert [float(x) for x in re.findall(r"^  map +(.*)$", curve, re.M)[0].split()] == list(range(20, 141, 20))
        assert len(re.findall(r"^  ts +", curve, re.M)) == 2
    else:
        assert table.splitlines()[0].split() == ["name", "what", "it", "is", "keeps", "makes", "true"]


def test_infinite_losses_are_written_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sure = np.eye(3)[Y]
    sure[:5] = np.eye(3)[(Y[:5] + 1) % 3]
    file = _save(tmp_path / "a.npz", probs=sure, labels=Y)
    assert main(["measure", file]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^nll +∞ +–", shown, re.M)
    assert not re.search(r"\b(inf|nan)\b", shown)
    assert main(["measure", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parts"][""]["metrics"]["nll"]["value"] == "inf"
    assert main(["compare", file, "--methods", "ts"]) == 0
    assert not re.search(r"\b(inf|nan)\b", capsys.readouterr().out)
    assert [number(x) for x in (np.inf, -np.inf, np.nan, None, 0.25)] == ["∞", "-∞", "–", "–", "0.2500"]


def test_no_point_beyond_the_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _save(tmp_path / "a.npz", logits=Z, labels=Y)
    assert main(["compare", file, "--methods", "ts", "--sizes", "100,240,241,5000", "--json"]) == 0
    captured = capsys.readouterr()
    assert "left out of --sizes, as there are 240 rows to fit on: 241, 5000" in captured.err
    assert [p["rows"] for p in json.loads(captured.out)["curves"][0]["points"]] == [100, 240]
    assert main(["compare", file, "--methods", "ts", "--sizes", "5000"]) == 3
    assert "more rows than the 240" in capsys.readouterr().err
    test = ["--test", file, "--sizes", "300,301"]
    assert main(["compare", file, "--methods", "ts", *test]) == 0
    assert "300 rows to fit on: 301" in capsys.readouterr().err


def test_a_report_is_reproduced_with_every_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _save(tmp_path / "my file.npz", out=100 * P, truth=Y, site=np.arange(300) // 3, w=np.ones(300))
    given = ["report", "my file.npz", "-o", "r.html", "--title", "Ants & bees", "--methods", "ts,platt", "--cv", "3"]
    given += ["--repeats", "2", "--metric", "brier", "--preserve-accuracy", "--sizes", "50,100", "--kind", "probs"]
    given += ["--scores", "out", "--labels", "truth", "--groups", "site", "--weights", "w", "--percent", "--seed", "7"]
    assert main([*given, "-q"]) == 0
    page = (tmp_path / "r.html").read_text()
    found = re.search(r"calibrant report [^<]*", page)
    assert found is not None
    words = shlex.split(html.unescape(found[0]))
    assert words[:3] == ["calibrant", "report", "my file.npz"]
    assert sorted(words[3:]) == sorted("--output" if word == "-o" else word for word in given[2:])
    first = capsys.readouterr().out
    assert main([*words[1:], "-q"]) == 0
    assert capsys.readouterr().out == first


PART = {
    "metrics": {"ece": {"value": 0.03, "low": 0.01, "high": 0.06}, "mce": {"value": 0.1, "low": None, "high": None}},
    "test": {"pvalue": 0.004},
}


@pytest.mark.parametrize(
    ("rule", "failed"),
    [
        ("ece > 0.02", ["ece = 0.03 > 0.02"]),
        ("ece.value > 0.02", ["ece = 0.03 > 0.02"]),
        ("ece.high > 0.05", ["ece.high = 0.06 > 0.05"]),
        ("ece.low > 0.02", []),
        ("ece.low>0.005", ["ece.low = 0.01 > 0.005"]),
        ("p < 0.01", ["p = 0.004 < 0.01"]),
        ("p<=0.001", []),
        ("mce.high > 0.9", ["mce.high is not known"]),
    ],
)
def test_gates(rule: str, failed: list[str]) -> None:
    assert check_gates(parse_gates((rule,)), PART) == failed


def test_gates_on_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _save(tmp_path / "a.npz", logits=Z, labels=Y)
    for rule, code in (("ece.high > 0", 1), ("ece.high > 1", 0), ("p < 0.01", 1), ("p.low < 1", 2), ("ece.top > 1", 2)):
        assert main(["measure", file, "-q", "--fail-if", rule]) == code
    assert "p.low" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"scores": P}, "hint: pass --kind probs, or the logits themselves"),
        ({"scores": P[:, 1], "labels": Y % 2}, "hint: pass --kind probs; if these are log-odds"),
        (
            {"scores": Z, "kind": "probs"},
            "hint: pass --kind logits for logits, normalise the rows, or choose their columns with --scores",
        ),
        ({"scores": 100 * P, "kind": "probs"}, "hint: if these are percentages, pass --percent"),
        ({"scores": 100 * P[:, 1], "labels": Y % 2, "kind": "probs"}, "hint: if these are percentages, pass --percent"),
        (
            {"scores": Z, "labels": Y + 5 * (Y > 1) + 4 * (np.arange(300) == 3)},
            "hint: name the columns by their classes",
        ),
    ],
)
def test_hints_are_about_options(
    arrays: dict[str, object], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"labels": Y, **arrays}
    kind = given.pop("kind", "logits")
    assert main(["measure", _save(tmp_path / "a.npz", **given), "--kind", str(kind)]) == 3
    assert words in capsys.readouterr().err


def test_no_hint_of_the_library_is_left_in_python() -> None:
    """Whatever a map, a check or a comparison advises comes out without ``name=value`` but for ``--set``."""
    room, found = Path(calibrant.__file__).parent, []
    for place in ("validation", "maps", "operators", "selection", "fits", "files"):
        for path in (room / place).rglob("*.py"):
            for call in ast.walk(ast.parse(path.read_text())):
                if isinstance(call, ast.keyword) and call.arg == "hint":
                    found += [n.value for n in ast.walk(call.value) if isinstance(n, ast.Constant)]
    hints = [hint for hint in found if isinstance(hint, str)]
    assert len(hints) > 30
    for hint in hints:
        assert not re.search(r"(?<!--set )\b[a-z_]+=", in_options(hint)), hint


def test_warnings_name_the_method_that_was_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _save(tmp_path / "a.npz", logits=Z[:12], labels=Y[:12])
    assert main(["fit", file, "--method", "platt", "-o", str(tmp_path / "m")]) == 0
    shown = capsys.readouterr().err
    assert "warning: platt" in shown
    assert "OneVsRest" not in shown


def test_fit_chooses_with_auto(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _save(tmp_path / "a.npz", logits=Z, labels=Y)
    assert main(["fit", file, "--method", "auto", "-o", str(tmp_path / "m"), "-q"]) == 0
    assert main(["apply", str(tmp_path / "m"), file, "-o", str(tmp_path / "p.npz"), "-q"]) == 0
    assert main(["fit", file, "--method", "sigmoid", "-o", str(tmp_path / "m")]) == 3
    assert "did you mean platt?" in capsys.readouterr().err


def test_a_simulation_fits_80_columns(narrow: int, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ",".join(str(size) for size in range(100, 1001, 100))
    assert main(["simulate", "resnet110_c10", "--rows", sizes, "--repeats", "5", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= narrow
    assert sum(line.startswith("15 ") for line in lines) == 2


def test_inspect_tells_the_columns_of_a_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _save(tmp_path / "a.npz", logits=Z, labels=np.array(["x", "y", "z"])[Y])
    assert main(["fit", file, "--method", "ts", "-o", str(tmp_path / "m"), "-q"]) == 0
    capsys.readouterr()
    assert main(["inspect", str(tmp_path / "m"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["map"], told["columns"]) == ("TemperatureScaling()", ["x", "y", "z"])


def test_a_test_set_of_npy_has_labels_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, array in {"logits": Z[:150], "y": Y[:150], "test_logits": Z[150:], "test_y": Y[150:]}.items():
        np.save(f"{name}.npy", array)
    words = ["compare", "logits.npy", "--labels", "y.npy", "--methods", "ts", "--test", "test_logits.npy", "--json"]
    assert main(words) == 3
    assert "name the file that holds them with --test-labels" in capsys.readouterr().err
    assert main([*words, "--test-labels", "test_y.npy"]) == 0
    found = json.loads(capsys.readouterr().out)
    wanted = calibrant.compare(Z[:150], Y[:150], methods=["ts"], test=(Z[150:], Y[150:]))
    assert found["rows"][0]["metrics"]["nll"]["value"] == pytest.approx(wanted.rows[0].metrics["nll"].value)


def test_a_map_on_embeddings_compares_itself_with_the_scores_of_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    means = rng.normal(size=(12, 30)) * 0.4
    y = np.arange(240) % 12
    x = means[y] + rng.normal(size=(240, 30))
    logits = 2.0 * (x @ means.T - 0.5 * (means**2).sum(axis=1))
    file, fitted = _save(tmp_path / "both.npz", embeddings=x, logits=logits, labels=y), str(tmp_path / "k.calibrant")
    assert main(["fit", file, "--method", "kcal", "--set", "projection=lda", "-o", fitted]) == 0
    assert "does not replace the classifier" in capsys.readouterr().err
    assert main(["apply", fitted, file, "-o", str(tmp_path / "out.npz")]) == 0
    alone = calibrant.make("ts").fit(logits, y).predict_proba(logits)
    answers = np.load(tmp_path / "out.npz")
    np.testing.assert_allclose(answers[next(k for k in answers.files if answers[k].ndim == 2)], alone, atol=1e-12)


def test_percentages_are_probabilities_whatever_the_column_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "risk.csv"
    rows = "".join(f"{i % 2};{(i % 90) + 2.5}\n".replace(".", ",") for i in range(60))
    file.write_text("label;risk\n" + rows)
    assert main(["measure", str(file), "--scores", "risk", "--percent", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert main(["measure", str(file), "--scores", "risk", "--kind", "probs", "--percent", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == shown
    assert main(["measure", str(file), "--scores", "risk"]) != 0
