"""Names of classes that a terminal would obey are shown instead."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner

from calibrant.cli.commands.apply import _is_formula
from calibrant.cli.main import program
from calibrant.cli.output import visible

NAMES = ["<script>alert(1)</script>", "=cmd()", "x" * 10_000, "a\nb", "\u202eabc", "\x1b[31mred\x07"]


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


@pytest.mark.parametrize("name", NAMES)
def test_visible_text_is_printable(name):
    assert visible(name, kept="").isprintable()
    assert visible("plain, ∞ and é") == "plain, ∞ and é"
