"""The page of a monitor: whole, offline, and every name escaped."""

import json
import re

import numpy as np
import pytest
from tests.reports.test_report import _Page

import calibrant
from calibrant.monitoring import Monitor
from calibrant.reports import Context


@pytest.mark.parametrize("how", ["calm", "groups", "impossible", "empty", "changed", "run_length"])
def test_the_page_is_whole(how, tmp_path):
    settings = {"changed": {"question": "changed"}, "run_length": {"promise": "run_length", "alpha": 0.001}}
    rng, monitor = np.random.default_rng(0), Monitor(**settings.get(how, {}))
    for k in range(0 if how == "empty" else 20):
        p = rng.beta(2, 4, 80)
        groups = rng.choice(["a", "<script>b"], 80) if how == "groups" else None
        truth = p / 3 if how == "groups" and k > 10 else p
        monitor.update(rng.random(80) < truth, p, groups=groups, label=f"<i>{k}")
    if how == "impossible":
        monitor.update([1], [0.0], label="last")
    calibrant.report(monitor, tmp_path / "w.html", Context(command="calibrant watch <x>", facts={"model": "<b>"}))
    text = (tmp_path / "w.html").read_text()
    page = _Page(text)
    assert page.open == []
    assert page.addresses == ["data:,"]
    assert "<i>" not in text
    assert "<script>b" not in text
    assert len(page.images) == (0 if how == "empty" else 2)
    assert ("raised" in re.findall('class="verdict([^"]*)"', text)[0]) == monitor.alarm
    numbers = re.search(r'id="numbers">(.*?)</script>', text, re.S)
    told = json.loads(numbers[1])
    assert told["findings"]["batches"] == monitor.batches
    assert monitor.findings().verdict.split(":")[0].split("batch")[0] in text


def test_evidence_that_is_not_drawn_whole_says_so(tmp_path):
    monitor = Monitor()
    for _ in range(6):
        monitor.update(np.ones(80), np.full(80, 0.3))
    calibrant.report(monitor, tmp_path / "w.html")
    assert "≥ 1e12" in (tmp_path / "w.html").read_text()
