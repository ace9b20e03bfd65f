"""Decision curves and debiased errors, written out for few rows."""

import numpy as np
import pytest
from scipy.stats import norm

from calibrant import metrics
from calibrant.cells.pairs import Pairs, standard_error
from calibrant.metrics.decisions.net_benefit import curve_of_decisions
from calibrant.metrics.estimators.debiased import debiased


def rows(seed, n=40):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 8, n) / 8
    w = (None, rng.integers(1, 4, n) * 1.0, rng.choice([0.5, 1.5], n))[seed % 3]
    return (rng.random(n) < p) * 1.0, p, w


@pytest.mark.parametrize("clusters", [None, np.arange(40) // 4])
@pytest.mark.parametrize("seed", range(3))
def test_a_decision_curve_has_the_errors_of_its_rows(seed, clusters):
    """Beside acting always where that is worth something, and beside never acting where it is not."""
    y, p, w = rows(seed)
    own = np.ones(40) if w is None else w
    pairs = Pairs(p, y, w, clusters=clusters)
    thresholds = [0.05, 0.25, 0.5, 0.875]
    found, reach = curve_of_decisions(pairs, thresholds, 0.9), norm.ppf(0.95)
    signs = set()
    for i, t in enumerate(thresholds):
        worth = (p >= t) * (y - (1 - y) * t / (1 - t))
        always = y - (1 - y) * t / (1 - t)
        value, treated = np.average(worth, weights=own), np.average(always, weights=own)
        error = reach * standard_error(worth, pairs)[0]
        ahead = value - max(treated, 0)
        gap = reach * standard_error(worth - always if treated > 0 else worth, pairs)[0]
        told = [part[i] for part in (found.net_benefit, found.low, found.high, found.treat_all)]
        assert told == pytest.approx([value, value - error, value + error, treated])
        told = [part[i] for part in (found.advantage, found.advantage_low, found.advantage_high)]
        assert told == pytest.approx([ahead, ahead - gap, ahead + gap])
        signs.add(treated > 0)
    assert signs == {True, False}


@pytest.mark.parametrize("edges", ["equal_width", "equal_mass"])
@pytest.mark.parametrize("bins", [2, 5])
def test_a_debiased_error_takes_away_what_chance_adds(bins, edges):
    """Norm 2 in loops over bins of two rows and more; norm 1 by the mean of many draws."""
    for seed in range(9):
        if seed % 3 == 2:
            continue
        y, p, w = rows(seed)
        own = np.ones(40) if w is None else w
        made = metrics.reliability_curve(y.astype(int), p, bins=bins, edges=edges, sample_weight=w).binned
        squares, plain = 0.0, 0.0
        rng = np.random.default_rng(seed)
        for low, high in zip(made.left, made.right, strict=True):
            part = (p >= low) & (p < high)
            n = own[part].sum()
            if n < 2:
                continue
            f, gap = np.average(y[part], weights=own[part]), np.average(p[part] - y[part], weights=own[part])
            squares += n * (gap**2 - f * (1 - f) / (n - 1))
            drawn = np.abs(gap + np.sqrt(f * (1 - f) / n) * rng.normal(size=40_000)).mean()
            plain += n * (2 * abs(gap) - drawn)
        pairs = Pairs(p, y, w)
        assert debiased(pairs, norm=2, bins=bins, edges=edges) == pytest.approx(np.sqrt(max(0, squares / own.sum())))
        assert debiased(pairs, norm=1, bins=bins, edges=edges) == pytest.approx(max(0, plain / own.sum()), abs=3e-3)
