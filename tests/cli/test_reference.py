"""The command reference in the docs is generated, and up to date."""

from pathlib import Path
from runpy import run_path

from calibrant.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
reference = run_path(str(ROOT / "scripts" / "commands_page.py"))["reference"]


def test_the_reference_is_up_to_date() -> None:
    page = ROOT / "docs" / "cli.md"
    assert page.read_text(encoding="utf-8") == reference(), "run `make docs`"


def test_every_command_is_in_it() -> None:
    text = reference()
    for name in COMMANDS:
        assert f"## calibrant {name}\n" in text
