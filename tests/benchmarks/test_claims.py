"""The page of claims is what the studies' records say, and the studies' frame keeps its promises."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

PAPERS = Path(__file__).resolve().parents[2] / "benchmarks" / "papers"


@pytest.fixture
def frame(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(PAPERS))
    module = importlib.import_module("frame")
    monkeypatch.setattr(module, "CELLS", tmp_path / "cells")
    monkeypatch.setattr(module, "EVIDENCE", tmp_path / "evidence")
    monkeypatch.setattr(module, "RECORDS", tmp_path / "evidence" / "claims")
    yield module
    sys.modules.pop("frame", None)


WORDS = {"code": "X1", "place": "§1", "says": "s", "protocol": "p", "found": "f", "page": "x"}


def test_the_page_of_claims_is_made_of_the_records(monkeypatch):
    monkeypatch.syspath_prepend(str(PAPERS))
    page = importlib.import_module("claims").claims_page()
    sys.modules.pop("claims")
    sys.modules.pop("frame")
    assert (PAPERS.parents[1] / "docs/evidence/claims.md").read_text() == page


def test_a_stopped_run_keeps_its_cells(frame):
    first = frame.Study("x", "y", [])
    assert first.cell(("a", 1), lambda: np.float64(2.5)) == 2.5
    with (frame.CELLS / "x-y.jsonl").open("a") as out:
        out.write('{"key": "half a li')
    again = frame.Study("x", "y", [])
    assert again.cell(("a", 1), lambda: pytest.fail("computed twice")) == 2.5


def test_a_quick_run_writes_nothing(frame, tmp_path):
    study = frame.Study("x", "y", [], quick=True)
    study.cell(("a",), lambda: 1)
    study.page("x", "text")
    study.claim(**WORDS, verdict="holds")
    assert not study.close()
    assert list(tmp_path.iterdir()) == []


def test_a_page_is_left_alone_where_a_set_of_its_record_is_missing(frame, capsys):
    study = frame.Study("x", "y", [])
    study.page("x", "all sets")
    study.claim(**WORDS, verdict="holds")
    frame.EVIDENCE.mkdir()
    assert study.close()
    record = frame.RECORDS / "x-y.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "sets": {"a set of somebody else": 10}}))
    later = frame.Study("x", "y", [])
    later.page("x", "fewer sets")
    assert not later.close()
    assert (frame.EVIDENCE / "x.md").read_text() == "all sets\n"
    assert "a set of somebody else" in capsys.readouterr().out


def test_a_page_is_left_alone_where_something_else_that_it_needs_is_missing(frame, capsys):
    study = frame.Study("x", "y", [])
    assert not study.needs("a package", False)
    study.page("x", "without it")
    assert not study.close()
    assert not (frame.EVIDENCE / "x.md").exists()
    assert "left alone, as a package is missing" in capsys.readouterr().out


def test_a_verdict_is_one_of_four(frame):
    with pytest.raises(ValueError, match="unknown verdict"):
        frame.Study("x", "y", []).claim(**WORDS, verdict="more or less")


def test_every_set_that_comes_with_the_project_loads(frame):
    for path in frame.OURS.glob("*.npz"):
        name = path.stem.split("-")[0]
        if name != "top1_guo_models":  # confidences, not scores of classes
            rows = frame.load(name)
            assert len(rows.logits) == len(rows.labels)
            assert rows.labels.max() < rows.k
