"""The site: its reference is complete, its guides are there, and it is built without a warning."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import calibrant

TOP = Path(__file__).resolve().parent.parent
PAGE = (TOP / "docs/api.rst").read_text(encoding="utf-8")
pytest.importorskip("sphinx_gallery")


def test_the_reference_names_every_public_name():
    told = set(re.findall(r"auto(?:class|function):: calibrant\.(\w+)$", PAGE, re.MULTILINE))
    assert told == set(calibrant.__all__), "run `make docs`"


ROOMS = ["metrics", "monitoring", "plots", "simulation", "testing", "files", "selection", "exports", "fits.report"]


@pytest.mark.parametrize("room", [*ROOMS, "torch.losses"])
def test_the_reference_names_what_a_room_offers(room):
    if room == "torch.losses":
        pytest.importorskip("torch")
    offered = import_module(f"calibrant.{room}")
    wanted = {name for name in offered.__all__ if callable(getattr(offered, name))} - set(calibrant.__all__)
    told = set(re.findall(rf"auto(?:class|function):: calibrant\.{re.escape(room)}\.(\w+)$", PAGE, re.MULTILINE))
    assert told == wanted, "run `make docs`"


def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    told = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(tmp_path / "trees"),
         str(TOP / "docs"), str(tmp_path / "site")],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr[-3000:]
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text(encoding="utf-8")
        remote = re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="(https?:[^"]*)"', text)
        assert not [address for address in remote if "canonical" not in address], page.name
        assert str(TOP) not in text, f"{page.name} names a path of this machine"
        for target in re.findall(r'(?:href="([^"#:?]+\.html)|<img[^>]* src="([^":?]+))', text):
            assert (page.parent / "".join(target)).exists(), f"{page.name} points at {target}"
