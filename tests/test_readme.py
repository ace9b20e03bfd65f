"""The README is true and short, its code runs as pasted, and the table of maps is current."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def generator():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "scripts" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_maps_is_current():
    page = generator().MAPS.read_text(encoding="utf-8")
    assert generator().with_table(page) == page, "run `make docs`"


def test_it_is_one_screen_and_a_picture():
    assert len(README.splitlines()) <= 60
    assert README.count("<img ") == 1


def test_the_first_commands_are_demo_and_test():
    first = README.split("```")[1]
    assert "make demo" in first
    assert "make test" in first


def test_the_code_runs_as_pasted(capsys):
    code = re.findall(r"```python\n(.*?)```", README, flags=re.S)[0]
    exec(compile(code, "README.md", "exec"), {})
    assert "temperature" in capsys.readouterr().out
