"""The command reference in the docs is generated, and up to date."""

from pathlib import Path

from calibrant.cli.main import COMMANDS
from calibrant.cli.reference import reference


def test_the_reference_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "cli.md"
    assert page.read_text(encoding="utf-8") == reference(), "run `make docs`"


def test_every_command_is_in_it() -> None:
    text = reference()
    for name in COMMANDS:
        assert f"## calibrant {name}\n" in text
