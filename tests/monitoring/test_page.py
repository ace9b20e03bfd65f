"""docs/monitoring.md runs as pasted, and says what it prints."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from calibrant import report
from calibrant.monitoring import Monitor

PAGE = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")


def test_the_code_runs_as_pasted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
    exec(compile(blocks[0], "monitoring.md", "exec"), names)
    assert capsys.readouterr().out.strip() == re.findall(r"```text\n(.*?)```", PAGE, flags=re.S)[0].strip()
    assert {path.name for path in tmp_path.iterdir()} == {"state.json", "monitor.png", "watch.html"}
    exec(compile("\n".join(blocks[1:]), "monitoring.md", "exec"), names)
    assert names["both"].batches == 3
    plt.close("all")


@pytest.mark.parametrize("name", ["monitor.png", "evidence/watching.md"])
def test_what_the_page_shows_is_there(name):
    assert (Path(__file__).parents[2] / "docs" / name).is_file()


def test_a_long_watch_tells_its_first_batch_and_cuts_no_label(tmp_path):
    monitor = Monitor()
    for day in range(200):
        monitor.update([0, 1], [0.2, 0.7], label=f"2026-{day:04d}")
    report(monitor, tmp_path / "watch.html")
    page = (tmp_path / "watch.html").read_text(encoding="utf-8")
    assert "200 batches, from 2026-0000 to 2026-0199" in page
    last = re.findall(r'<text x="([\d.]+)" [^>]*text-anchor="(\w+)">2026-0199', page)
    assert len(last) == 2
    assert {anchor for _, anchor in last} == {"end"}
