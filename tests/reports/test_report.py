"""The page: one small offline file that says everything and escapes every name."""

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import overconfident
from tests.exports.export_cases import quietly
from tests.exports.test_json_text import answers, plain

import calibrant
from calibrant import compare, make
from calibrant.errors import CalibrationWarning, FileProblem, InvalidInput
from calibrant.reports import Context, report
from calibrant.reports.fitted import curves_of

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
    shown = html.unescape(text)
    assert comparison.reason in shown
    for words in ("The data", "The figures", "What to do", "calibrant report x.npz", "What more rows would change"):
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
    assert "all 4, the largest mean gap first" in (tmp_path / "m.html").read_text()
    report(make("ts").fit(z, y), tmp_path / "c.html")
    text = (tmp_path / "c.html").read_text()
    assert "TemperatureScaling()" in text
    assert _Page(text).open == []


def test_the_picture_comes_first(text: str, comparison: Any) -> None:
    places = [
        text.index(words) for words in ('id="verdict"', "What to do", 'href="#mark-0"', 'id="metrics"', 'id="data"')
    ]
    assert places == sorted(places)
    verdict = text[text.index('id="verdict"') : text.index('id="metrics"')]
    assert comparison.reason in html.unescape(verdict)
    assert "before error" in text
    assert "after error" in text


def test_every_figure_shows_its_norm_and_notes(text: str) -> None:
    assert '<td>ece_crossfit</td><td data-label="norm">2</td>' in text
    assert '<td>ece</td><td data-label="norm">1</td>' in text
    assert _numbers(text)["before"]["metrics"]["ece_debiased"]["norm"] == 2


def test_an_estimate_without_an_interval_says_why(tmp_path: Path) -> None:
    found = calibrant.measure([0, 1] * 30, [0.0, 0.4] * 15 + [0.3, 0.0] * 15, resamples=50)
    assert found.metrics["nll"].low is None
    report(found, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    shown = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert "∞ no interval" in shown
    assert found.metrics["nll"].note in shown
    assert "nan" not in shown
    assert ">inf" not in shown


@pytest.fixture(scope="module")
def event() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    risk = rng.beta(1, 30, 1500)
    return risk, (rng.random(1500) < risk / 2).astype(int)


def test_an_event_is_an_event_in_its_report(event: tuple[Any, Any], tmp_path: Path) -> None:
    risk, y = event
    measured = calibrant.measure(y, risk)
    report(measured, tmp_path / "m.html")
    found = compare(risk, y, methods=["platt", "isotonic"], inputs="probabilities", cv=3)
    report(found, tmp_path / "c.html")
    for name in ("m.html", "c.html"):
        text = (tmp_path / name).read_text()
        assert "most probable class" not in text.lower()
        shown = re.sub(r"<script.*?</script>", "", text, flags=re.S)
        assert "accuracy" not in shown.lower()
        assert "event_rate" in shown
        assert "The event" in shown
        assert "up to 0.2, where 99 %" in shown
    numbers = _numbers((tmp_path / "c.html").read_text())["before"]
    assert numbers["verdict"] == measured.verdict
    for name, interval in measured.metrics.items():
        assert numbers["metrics"][name]["estimate"] == pytest.approx(interval.estimate, rel=1e-5)
    identity = found["identity"].metrics
    for name in ("brier", "ece", "nll"):
        assert identity[name].value == pytest.approx(measured.metrics[name].estimate, rel=1e-6)


def test_the_resampling_floor_is_a_bound(text: str) -> None:
    assert "p ≤ 0.001" in text
    assert "p = 0.001" not in text


@pytest.mark.parametrize("name", ["ts", "vector", "beta", "irm", "irova-ts", "sms", "imax", "bts", "uniform"])
def test_a_map_shows_its_parameters_and_its_curve(name: str, tmp_path: Path) -> None:
    z, y = overconfident(300, 3)
    fitted = make(name).fit(z, y)
    report(fitted, tmp_path / "c.html")
    text = (tmp_path / "c.html").read_text()
    assert _Page(text).open == []
    assert "What the map answers" in text
    assert text.count('class="line line') in (1, 3)
    if name != "uniform":
        assert "What it has learnt" in text
    if name == "ts":
        assert f"{fitted.temperature_:.4g}" in text
        assert text.count('class="line line') == 1


def test_curves_are_what_the_map_answers() -> None:
    z, y = overconfident(300, 3)
    fitted = make("vector").fit(z + np.array([2.0, 0.0, -2.0]), y)
    places, curves = curves_of(fitted)
    assert list(curves) == ["class 0", "class 1", "class 2"]
    p = places[40]
    row = np.log([[p, (1 - p) / 2, (1 - p) / 2]])
    assert curves["class 0"][40] == pytest.approx(fitted.predict_proba(row)[0, 0])
    rng = np.random.default_rng(0)
    risk = rng.random(4000)
    single = make("isotonic", inputs="probabilities").fit(risk, (rng.random(4000) < risk**2).astype(int))
    places, curves = curves_of(single)
    assert curves["class 1"][60] == pytest.approx(single.predict_proba(places[[60]])[0, 1])
    with pytest.warns(CalibrationWarning):
        kcal = make("kcal-linear").fit(rng.normal(size=(60, 4)), np.arange(60) % 3)
    assert curves_of(kcal)[1] == {}


def test_many_classes_stay_below_a_megabyte_and_say_which_are_shown(tmp_path: Path) -> None:
    z, y = overconfident(400, 200)
    report(compare(z, y, methods=["ts"], cv=2), tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert len(text.encode()) < 1_000_000
    assert "20 of 200, those with the largest mean gap" in text
    for i in range(1, 21):  # every class has both curves
        mark = text[text.index(f'<g id="mark-{i}">') :].split("</g>\n", 1)[0]
        assert '<g class="before">' in mark
        assert '<g class="after">' in mark


def test_wrong_use_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="report can be about"):
        report(np.zeros(3), tmp_path / "r.html")
    z, y = overconfident(100, 3)
    with pytest.raises(FileProblem):
        report(make("ts").fit(z, y), tmp_path / "none" / "r.html")


@pytest.mark.parametrize("name", ["isotonic", "sms", "beta"])
def test_the_page_carries_the_map_that_it_is_about(tmp_path: Path, name: str) -> None:
    z, y = overconfident(400, 3)
    rows = [((z, y), z[:40])]
    if name != "sms":
        rows.append(((z[:, 1] - z[:, 0], (y == 1).astype(int)), z[:40, 1] - z[:40, 0]))
    for given, asked in rows:
        fitted = quietly(make(name), *given)
        report(fitted, tmp_path / "r.html")
        text = (tmp_path / "r.html").read_text(encoding="utf-8")
        found = re.search(r'<script type="application/json" id="map">(.*?)</script>', text, re.S)
        assert found is not None
        assert calibrant.exports.evaluator() in text
        (told,) = answers(
            [{"map": json.loads(found.group(1)) | {"golden": {"scores": []}}, "rows": plain(asked.reshape(40, -1))}]
        )
        np.testing.assert_allclose(told["rows"], fitted.predict_proba(asked), rtol=0, atol=1e-12)


def test_scores_that_no_one_would_type_are_not_asked_for(tmp_path: Path) -> None:
    z, y = overconfident(300, 25)
    report(make("ts").fit(z, y), tmp_path / "r.html")
    assert 'id="try"' not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_the_page_says_that_zeros_are_judged_as_something_small(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p = rng.integers(0, 11, 400) / 10
    y = (rng.random(400) < 0.2 + 0.6 * p).astype(int)
    at_the_ends = int(((p == 0) | (p == 1)).sum())
    for saturated, zeros in (("small", at_the_ends), ("exact", 0)):
        found = compare(p, y, inputs="probabilities", methods=["ts"], saturated=saturated)
        assert found.settings["zeros"] == zeros
        report(found, tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        assert (f"{at_the_ends} rows with a probability of exactly 0" in page) == (zeros > 0)


def test_the_page_of_a_choice_shows_the_chosen_map_and_no_table_of_the_others(tmp_path: Path) -> None:
    z, y = overconfident(80, 3)
    names = np.array(["red soil", "bark", "ash"])
    report(make("auto", methods=["ts", "vector"], classes=names).fit(z, names[y]), tmp_path / "map.html")
    text = (tmp_path / "map.html").read_text().split('id="numbers"')[0]
    assert "AutoCalibrator(methods=[" in text.replace("&#39;", "'")
    assert "array(" not in text
    assert "fit_seconds" not in text
