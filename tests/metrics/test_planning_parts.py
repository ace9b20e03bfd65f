"""Planning: the bound, the curve that has an error, the search for the number of rows, and the power of one number."""

import numpy as np
import pytest

from calibrant.cells.pairs import Pairs
from calibrant.errors import InvalidInput
from calibrant.metrics import calibration_error_bound, required_samples
from calibrant.metrics.estimators.sweep import sweep_cells
from calibrant.metrics.inference import planning


def test_the_bound_is_that_of_theorem_two():
    """ECE + J √((2/N) ln(4/δ))."""
    for ece, n, bins, delta in ((0.0, 1, 1, 0.5), (0.02, 5000, 10, 0.05), (1.0, 80, 3, 0.01)):
        wanted = ece + bins * np.sqrt(2 / n * np.log(4 / delta))
        assert calibration_error_bound(ece, n, bins, delta) == pytest.approx(wanted)
    assert calibration_error_bound(0.1, 100, 4) == calibration_error_bound(0.1, 100, 4, 0.05)
    for bad in (
        (-0.01, 9, 9),
        (1.01, 9, 9),
        (0.1, 0, 9),
        (0.1, 9, 0),
        (0.1, 9, 9, 0.0),
        (0.1, 9, 9, 1.0),
        (0.1, 9, 9, "1"),
    ):
        with pytest.raises(InvalidInput):
            calibration_error_bound(*bad)


@pytest.mark.parametrize("tce", [0.01, 0.1, 0.4])
def test_a_power_of_uniform_scores_has_the_error_asked_for(tce):
    """∫|s - s^d| = ½ - 1/(d + 1), and ∫(s - s^d)² = 1/3 - 2/(d + 2) + 1/(2d + 1)."""
    d = planning._exponent(planning._UNIFORM, tce, 1)
    assert 0.5 - 1 / (d + 1) == pytest.approx(tce, rel=1e-4)
    d = planning._exponent(planning._UNIFORM, tce, 2)
    assert np.sqrt(1 / 3 - 2 / (d + 2) + 1 / (2 * d + 1)) == pytest.approx(tce, rel=1e-4)


def test_an_error_that_no_power_has_is_refused():
    most = np.mean(0.5 - 0.5 ** np.exp(7.0))
    assert planning._exponent(np.array([0.5]), most - 1e-6, 1) > 1
    for tce in (0.0, -0.1, most + 1e-6):
        with pytest.raises(InvalidInput, match="cannot be reached"):
            planning._exponent(np.array([0.5]), tce, 1)


@pytest.mark.parametrize("enough", [1, 16, 17, 32, 33, 40, 333, 5000, 70_001])
def test_the_smallest_number_of_rows_is_found_to_a_sixteenth(monkeypatch, enough):
    asked = []

    def power(law, exponent, n, *rest):
        asked.append(n)
        assert rest == (0.1, 1, 50, 3)
        return 0.9 if n >= enough else 0.89

    monkeypatch.setattr(planning, "_power", power)
    settings: dict = {"false_alarms": 0.1, "norm": 1, "repeats": 50, "random_state": 3}
    least = planning._least(planning._UNIFORM, planning._exponent(planning._UNIFORM, 0.1, 1), 0.8)
    assert 32 < least <= 64
    assert required_samples(0.1, 0.9, **settings) > 32
    assert asked[0] == 64  # fewer cannot do
    asked.clear()
    monkeypatch.setattr(planning, "_least", lambda *given: 0.0)
    found = required_samples(0.1, 0.9, **settings)
    low, high, wanted = 16, 32, [32]
    while high < enough:
        low, high = high, 2 * high
        wanted.append(high)
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        low, high = (low, middle) if middle >= enough else (middle, high)
        wanted.append(middle)
    assert asked == wanted
    assert found == high
    assert max(17, enough) <= found <= max(17, enough) + max(1, enough // 16)


def test_an_error_that_no_number_of_rows_shows_is_refused(monkeypatch):
    monkeypatch.setattr(planning, "_power", lambda *given: 0.0)
    with pytest.raises(InvalidInput, match="too small to be noticed"):
        required_samples(0.1)
    for bad in ({"power": 0.0}, {"power": 1.0}, {"false_alarms": 0.0}, {"false_alarms": 1.0}, {"repeats": 19}):
        with pytest.raises(InvalidInput):
            required_samples(0.1, **bad)
    for scores in ([], [-0.1, 0.5], [0.5, 1.1], [np.nan]):
        with pytest.raises(InvalidInput):
            required_samples(0.1, scores=scores)


@pytest.mark.parametrize("law", [None, np.array([0.1, 0.3, 0.35, 0.8])])
def test_power_is_the_share_of_samples_beyond_the_quantile(law):
    """Samples under calibration first, then under the curve; the quantile is one of them."""
    rng, values = np.random.default_rng([5, 30]), []
    for curve in (1.0, 1.7):
        shape = (120, 30)
        s = rng.random(shape) if law is None else rng.choice(law, shape)
        y = rng.random(shape) < s**curve
        values.append(
            [sweep_cells(Pairs(a, b * 1.0).cells, norm=2, edges="equal_mass").error for a, b in zip(s, y, strict=True)]
        )
    limit = np.sort(values[0])[int(np.ceil(0.9 * 119))]
    wanted = np.mean(np.array(values[1]) > limit + 1e-12)
    assert planning._power(law, 1.7, 30, 0.1, 2, 120, 5) == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize("law", [None, np.linspace(0.05, 0.9, 9000)])
def test_power_of_many_rows_is_that_of_rows_counted_by_score(monkeypatch, law):
    apart = planning._power(law, 1.03, 19_000, 0.05, 2, 200, 1)
    monkeypatch.setattr(planning, "MOST_APART", 1000)
    assert 0.1 < apart < 0.95
    assert planning._power(law, 1.03, 19_000, 0.05, 2, 200, 1) == pytest.approx(apart, abs=0.15)


def test_what_no_test_could_notice_is_refused_at_once(monkeypatch):
    """A shift of δ at one half has KL = 2 δ², and a test of level α the power α + √(n KL / 2) at most."""
    delta = 0.5 - 0.5**1.01
    assert planning._least(np.array([0.5]), 1.01, 0.75) == pytest.approx(0.75**2 / delta**2, rel=1e-3)
    monkeypatch.setattr(planning, "_power", None)
    for tce in (1e-9, 1e-6):
        with pytest.raises(InvalidInput, match="too small to be noticed"):
            required_samples(tce)
