"""Names of classes that a terminal would obey are shown instead."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from calibrant import measure, report
from calibrant.cli.commands.apply import _is_formula
from calibrant.cli.main import main, program
from calibrant.monitoring import Monitor
from calibrant.plain import visible

NAMES = ["<script>alert(1)</script>", "=cmd()", "x" * 10_000, "a\nb", "\u202eabc", "\x1b[31mred\x07"]
FORMULAS = [r"$\frac{$", "$x_{", "{{7*7}}"]  # of matplotlib and of templates


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(6), 60)
    labels = np.where(rng.random(60) < 0.6, p.argmax(axis=1), rng.integers(0, 6, 60))
    with open(tmp_path / "p.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow([*(f"p_{name}" for name in NAMES), "label"])
        out.writerows([*row, NAMES[label]] for row, label in zip(p, labels, strict=True))
    return tmp_path / "p.csv"


def run(*arguments):
    done = CliRunner().invoke(program, [str(a) for a in arguments])
    assert done.exit_code in (0, 1, 3), done.output
    return done.output


def test_terminals_are_not_obeyed(table):
    saved = table.with_name("m.calibrant")
    shown = run("measure", table, "--kind", "probs")
    shown += run("fit", table, "--method", "ts", "--kind", "probs", "-o", saved)
    shown += run("inspect", saved)
    shown += run("apply", saved, table, "-o", table.with_name("out.csv"))
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    assert max(map(len, shown.splitlines())) < 2000


def test_a_table_keeps_names_as_they_are_and_says_which_are_formulas(table):
    saved, out = table.with_name("m.calibrant"), table.with_name("out.csv")
    run("fit", table, "--method", "ts", "--kind", "probs", "-o", saved)
    shown = run("apply", saved, table, "-o", out)
    assert "a name like =cmd() is a formula" in shown
    with open(out, newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header[7:] == [f"calibrated_{name}" for name in sorted(NAMES)] or header[7:] == [
        f"calibrated_{name}" for name in NAMES
    ]
    assert {row[6] for row in rows} <= set(NAMES)
    assert "formula" not in run("apply", saved, table, "-o", table.with_name("out.jsonl"))


@pytest.mark.parametrize("name", ["-1", "+2.5", "1e5", "cat", "a=b"])
def test_numbers_and_words_are_no_formulas(name):
    assert not _is_formula(name)
    assert _is_formula(f"@{name}")


def test_a_page_escapes_names(table):
    page = table.with_name("r.html")
    run("report", table, "--kind", "probs", "-o", page, "--methods", "ts")
    text = page.read_text()
    assert "<script>alert(1)" not in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_long_names_do_not_hide_what_is_wrong(table, capsys):
    assert main(["measure", str(table), "--kind", "probs", "--scores", "\x1b[2J"]) == 3
    said = capsys.readouterr().err
    assert "\\x1b[2J" in said
    assert len(said) < 700


@pytest.mark.parametrize("name", NAMES)
def test_visible_text_is_printable(name):
    assert visible(name, kept="").isprintable()
    assert visible("plain, ∞ and é") == "plain, ∞ and é"


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    """One event; every row has a group and a batch of a hostile name, and the last batches are wrong."""
    rng, names, path = np.random.default_rng(0), [*FORMULAS, *NAMES], tmp_path_factory.mktemp("groups") / "g.csv"
    p = rng.beta(2, 4, 900)
    y = rng.random(900) < np.where(np.arange(900) < 300, p, p / 3)
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["prob", "y", "site", "day"])
        out.writerows([a, int(b), names[i % 9], names[i // 100]] for i, (a, b) in enumerate(zip(p, y, strict=True)))
    return path


def commands(path, out):
    """What tells names of groups and batches: on the terminal, on a page, in a picture."""
    page, picture, state = out / "page.html", out / "picture.svg", out / "state.json"
    drawn = ("--report", page, "--picture", picture)
    return {
        "groups": ("measure", path, "--groups", "site"),
        "risk": ("report", path, "--profile", "risk", "--groups", "site", "-o", page),
        "forecast": ("report", path, "--profile", "forecast", "--groups", "site", "-o", page),
        "watch": ("watch", state, path, "--groups", "site", "--batch", "day", *drawn),
    }


@pytest.mark.parametrize("which", ["groups", "risk", "forecast", "watch"])
def test_names_of_groups_and_batches_are_text_everywhere(grouped, tmp_path, which):
    shown = run(*commands(grouped, tmp_path)[which])
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert max(map(len, shown.splitlines())) < 2000
    for made in tmp_path.glob("p*"):
        text = made.read_text()
        assert "<script>alert(1)" not in text
        assert all(c.isprintable() or c in "\n\t" for c in text)
        assert made.suffix == ".svg" or all(name in text for name in FORMULAS)


def test_half_a_character_is_refused_by_the_line_it_is_in(tmp_path, capsys):
    """JSON can write one, and no table could: the error comes before the work."""
    lines = [{"p_a": 0.4, "p_b": 0.6, "label": "a"}, {"p_a": 0.4, "p_b": 0.6, "label": "\ud800"}]
    (tmp_path / "half.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert main(["measure", str(tmp_path / "half.jsonl"), "--kind", "probs"]) == 4
    assert "line 2 is not JSON" in capsys.readouterr().err


def test_a_monitor_keeps_names_that_are_no_characters(tmp_path):
    Monitor().update([0, 1], [0.2, 0.7], groups=["\ud800", "b"]).save(tmp_path / "m.json")
    assert "group \ud800" in [one.name for one in Monitor.load(tmp_path / "m.json").findings().streams]
    report(Monitor.load(tmp_path / "m.json"), tmp_path / "m.html")
    assert "\\ud800" in (tmp_path / "m.html").read_text()


def test_what_python_prints_is_not_obeyed():
    rng = np.random.default_rng(0)
    p, groups = rng.random(300), np.array(["\x1b[31mred\x07", "a\nb", "\u202eabc"])[rng.integers(0, 3, 300)]
    y = rng.random(300) < p / 3
    found = Monitor().update(y, p, groups=groups, label="\x1b[2J").findings()
    assert found.alarm
    shown = f"{measure(y, p, groups=groups)!r}{found}"
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    assert r"a\nb" in shown


def test_a_long_name_leaves_the_numbers_their_room(monkeypatch, capsys):
    """They vanished, of all rows."""
    from calibrant.cli import output

    monkeypatch.setattr(output, "table_width", lambda: 80)
    output.print_wide_table(("group", "rows", "gap"), [("x" * 10_000, "48", "+0.1234"), ("b", "52", "-0.4321")])
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert all(number in shown for number in ("48", "+0.1234", "52", "-0.4321"))
