"""Pages of the profiles: what a risk report, groups and labels add."""

import numpy as np
import pytest

import calibrant
from calibrant import metrics
from calibrant.metrics.views import forecasts
from calibrant.reports.tripod import checklist


@pytest.fixture(scope="module")
def risk():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 6, 900)
    y = (rng.random(900) < 0.7 * p).astype(int)
    return metrics.measure(y, p, profile="risk", resamples=60, groups=np.arange(900) % 3)


def test_a_risk_report_has_its_parts(risk, tmp_path):
    calibrant.report(risk, tmp_path / "risk.html")
    text = (tmp_path / "risk.html").read_text()
    for words in ("Calibration curve", "Decision curve", "By group", "TRIPOD+AI", "act never", 'class="band"'):
        assert words in text, words
    assert "nan" not in text.split('id="numbers"')[0]
    assert text.count("<svg") == text.count("</svg>")


def test_the_checklist_says_what_was_done(risk):
    items = {item: done for item, _, done in checklist(risk)}
    assert "900 rows" in items["10"]
    assert "3 groups" in items["14"]
    plain = metrics.measure([0, 1] * 40, np.linspace(0.2, 0.8, 80), profile="risk", resamples=30)
    assert "Not done" in {item: done for item, _, done in checklist(plain)}["14"]


def test_labels_have_their_table(tmp_path, rng):
    p = rng.random((200, 3))
    y = (rng.random((200, 3)) < p).astype(float)
    calibrant.report(metrics.measure(y, p, profile="multilabel", resamples=30), tmp_path / "labels.html")
    assert "By label" in (tmp_path / "labels.html").read_text()


def test_a_report_checks_probabilities_few_times(tmp_path, rng, monkeypatch):
    """Once a map and split, and twice for each page: it was 643 times when every resample was checked."""
    calls = []
    checked = forecasts.as_probabilities_of
    monkeypatch.setattr(forecasts, "as_probabilities_of", lambda *a, **k: calls.append(1) or checked(*a, **k))
    z = rng.normal(size=(300, 3)) * 2
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    found = calibrant.compare(z, y, methods=["identity", "ts", "ets"], inputs="logits")
    calibrant.report(found, tmp_path / "page.html")
    assert len(calls) <= 12


def test_lines_that_leave_a_frame_are_cut_there(risk, tmp_path):
    """Net benefit of acting always falls without end: along the lower edge it looked like a value."""
    calibrant.report(risk, tmp_path / "risk.html")
    text = (tmp_path / "risk.html").read_text()
    assert text.count("<clipPath") == text.count('clip-path="url(#inside-') == 2


def test_weights_are_no_participants(rng):
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    found = metrics.measure(y, p, sample_weight=rng.random(300) + 0.5, profile="risk", resamples=30)
    items = {item: done for item, _, done in checklist(found)}
    assert "300 weighted rows" in items["10"]
    assert "By the author" in items["20"]
