"""docs/monitoring.md runs as pasted, and says what it prints."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

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
