"""The report in a real browser: it opens, switches, sorts, makes no request and no error, with scripts and without."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripts.get_browser import SUPPORTED, get_browser, launch_options
from tests.conftest import overconfident

from calibrant import PlattScaling, compare
from calibrant.reports import Context, report


@pytest.fixture
def browser() -> Iterator[Any]:
    """A headless Chromium, fetched if it is not there. Where it was promised, doing without it is a failure."""
    trouble = get_browser()
    if trouble:
        promised = os.environ.get("CALIBRANT_BROWSER") == "required" or os.environ.get("CI")
        (pytest.fail if promised and SUPPORTED else pytest.skip)(f"no browser: {trouble}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(**launch_options())
        yield found
        found.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    z, y = overconfident(600, 4)
    path = tmp_path_factory.mktemp("page") / "r.html"
    names = ("<img src=x onerror=alert(1)>", "b", "c", "d")
    report(compare(z, y, methods=["ts", "platt"], cv=2, sizes=(40, 200)), path, Context(class_names=names))
    return path


def _open(browser: Any, path: Path, **options: Any) -> tuple[Any, list[str], list[str]]:
    page = browser.new_page(**options)
    requests: list[str] = []
    troubles: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: troubles.append(dialog.message))
    page.goto(path.as_uri())
    return page, requests, troubles


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("scripts", [True, False])
def test_it_opens_and_switches(browser: Any, page_file: Path, scheme: str, scripts: bool) -> None:
    page, requests, troubles = _open(browser, page_file, color_scheme=scheme, java_script_enabled=scripts)
    assert page.locator("h1").is_visible()
    assert page.locator(".diagram svg").is_visible()
    assert page.locator(".large-1").is_visible()
    assert not page.locator(".large-2").is_visible()
    page.locator('label[for="view-2"]').click()
    assert page.locator(".large-2").is_visible()
    assert not page.locator(".large-1").is_visible()
    for picture in (".diagram svg", ".large-2 svg"):
        pictures = []
        for which in ("both", "only-before", "only-after"):
            page.locator(f'label[for="{which}"]').click()
            pictures.append(page.locator(picture).screenshot())
        assert len(set(pictures)) == 3
    assert len(requests) == 1
    assert troubles == []


def test_tables_sort(browser: Any, page_file: Path) -> None:
    page, _, troubles = _open(browser, page_file)
    table = page.locator("table.sortable").nth(1)
    for _ in range(2):
        table.locator("thead th button").nth(1).click()
    values = [
        float(v) for v in table.locator("tbody tr td:nth-child(2)").evaluate_all("c => c.map(x => x.dataset.value)")
    ]
    assert values == sorted(values, reverse=True)
    assert troubles == []


def test_the_keyboard_is_enough(browser: Any, page_file: Path) -> None:
    page, _, _ = _open(browser, page_file)
    page.locator("#view-1").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".large-2").is_visible()
    page.locator("#both").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#only-before").is_checked()


# Elements that reach beyond the window, or hide or scroll a part of what they hold.
CUT = """width => [...document.querySelectorAll("main *")].filter(e =>
  !e.closest(".hidden") && !(e.ownerSVGElement) && !e.matches(".switch") &&
  (e.getBoundingClientRect().right > width + 1 ||
   (e.scrollWidth > e.clientWidth + 2 && getComputedStyle(e).overflowX !== "visible"))
).map(e => e.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize("width", [360, 400, 700, 1280])
def test_nothing_is_cut(browser: Any, page_file: Path, width: int) -> None:
    page, _, _ = _open(browser, page_file, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT, width) == []


def test_verdict_picture_and_advice_are_on_one_screen(browser: Any, page_file: Path) -> None:
    page, _, _ = _open(browser, page_file, viewport={"width": 1280, "height": 800})
    verdict, advice, picture = (page.locator(s).first.bounding_box() for s in (".verdict", ".advice", ".diagram svg"))
    assert max(box["y"] + box["height"] for box in (verdict, advice, picture)) <= 800
    assert picture["x"] > verdict["x"] + verdict["width"]  # two columns


def test_a_print_has_few_pages(browser: Any, tmp_path: Path) -> None:
    z, y = overconfident(800, 100)
    path = tmp_path / "r.html"
    report(compare(z, y, methods=["ts", "vector", "irm"], cv=2, sizes=(100, 300)), path)
    page, _, _ = _open(browser, path)
    printed = page.pdf(format="A4")
    assert 1 <= len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= 5
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 703, "height": 1000})  # A4 without its margins, in CSS pixels
    assert page.evaluate(CUT, 703) == []


def test_typed_scores_are_answered(browser: Any, page_file: Path, tmp_path: Path) -> None:
    page, requests, troubles = _open(browser, page_file)
    fields = page.locator("#try input")
    for place, text in enumerate(["3", "-1.5", "0.25", "2"]):
        fields.nth(place).fill(text)
    z, y = overconfident(600, 4)
    wanted = compare(z, y, methods=["ts", "platt"], cv=2, sizes=(40, 200)).refit_.predict_proba([[3, -1.5, 0.25, 2]])[0]
    shown = [float(text) for text in page.locator("#try .true").all_inner_texts()]
    assert shown == [round(float(p), 4) for p in wanted]
    fields.nth(1).fill("")
    assert page.locator("#untried").inner_text() == "Every score must be a number."
    assert (troubles, requests) == ([], [page_file.as_uri()])

    report(PlattScaling(inputs="probabilities").fit(np.linspace(0.02, 0.98, 90), [0, 1, 1] * 30), tmp_path / "one.html")
    page, _, troubles = _open(browser, tmp_path / "one.html")
    page.locator("#try input").fill("1.2")
    assert "between 0 and 1" in page.locator("#untried").inner_text()
    page.locator("#try input").fill("0.25")
    assert page.locator("#try .said").all_inner_texts() == ["0.7500", "0.2500"]
    assert troubles == []
