"""The page: one small offline file that says everything and escapes every name."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import overconfident

import calibrant
from calibrant import compare, make
from calibrant.errors import FileProblem, InvalidInput
from calibrant.reports import Context, report

VOID = {"meta", "link", "input", "br", "line", "circle", "rect", "polyline", "use"}


class _Page(HTMLParser):
    """Collects what the tests ask about, and that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.headings: list[str] = []
        self.images: list[dict[str, Any]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [str(found["id"])] if "id" in found else []
        self.addresses += [str(found[key]) for key in ("src", "href") if key in found]
        self.headings += [tag] if re.fullmatch("h[1-6]", tag) else []
        self.images += [found] if found.get("role") == "img" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def _numbers(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found.group(1))


@pytest.fixture(scope="module")
def comparison() -> Any:
    z, y = overconfident(900, 10)
    return compare(z[:600], y[:600], methods=["ts", "platt"], test=(z[600:], y[600:]), sizes=(50, 500))


@pytest.fixture(scope="module")
def text(comparison: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "r.html"
    names = tuple(["<script>alert(1)</script>", '"quoted"', "a & b"] + [f"class {i}" for i in range(3, 10)])
    context = Context(
        "Title <b>", {"file": "x.npz", "accuracy": 0.5}, "calibrant report x.npz", names, ("careful <i>",)
    )
    report(comparison, path, context)
    return path.read_text(encoding="utf-8")


def test_it_is_small_offline_and_well_formed(text: str) -> None:
    page = _Page(text)
    assert page.open == []
    assert len(text) < 300_000
    assert len(page.ids) == len(set(page.ids))
    assert all(address.startswith(("#", "data:")) for address in page.addresses)
    assert "http" not in re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert set(re.findall(r'href="#(mark-\d+)"', text)) <= set(page.ids)


def test_names_are_text(text: str) -> None:
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "Title &lt;b&gt;" in text
    assert "careful &lt;i&gt;" in text


def test_it_says_everything(text: str, comparison: Any) -> None:
    import html

    shown = html.unescape(text)
    assert comparison.reason in shown
    for words in ("The data", "The figures", "Recommendation", "calibrant report x.npz", "What more rows would change"):
        assert words in shown
    for row in comparison.rows:
        assert f"{row.metrics['nll'].value:.4f}" in shown
    numbers = _numbers(text)
    assert numbers["comparison"]["best"] == comparison.best_
    assert numbers["before"]["n"] == 300


def test_it_is_accessible(text: str) -> None:
    page = _Page(text)
    assert page.headings[0] == "h1"
    assert page.headings.count("h1") == 1
    assert all(image.get("aria-label") for image in page.images)
    assert 'lang="en"' in text
    assert "prefers-color-scheme: dark" in text


def test_a_measurement_and_a_map_have_pages_too(tmp_path: Path) -> None:
    z, y = overconfident(300, 4)
    p = make("identity").fit(z, y).predict_proba(z)
    measured = calibrant.measure(y, p, resamples=50)
    report(measured, tmp_path / "m.html")
    assert measured.verdict.split(":")[0] in (tmp_path / "m.html").read_text()
    report(make("ts").fit(z, y), tmp_path / "c.html")
    text = (tmp_path / "c.html").read_text()
    assert "TemperatureScaling()" in text
    assert _Page(text).open == []


def test_many_classes_stay_below_a_megabyte(tmp_path: Path) -> None:
    z, y = overconfident(400, 200)
    report(compare(z, y, methods=["ts"], cv=2), tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 1_000_000


def test_wrong_use_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="report can be about"):
        report(np.zeros(3), tmp_path / "r.html")
    z, y = overconfident(100, 3)
    with pytest.raises(FileProblem):
        report(make("ts").fit(z, y), tmp_path / "none" / "r.html")
