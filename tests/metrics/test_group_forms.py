"""What is found by group, written out: gaps, how far curves stray, and the score test of lines of their own."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2, norm

from calibrant.cells.pairs import Pairs, standard_error
from calibrant.metrics.estimators.cox import line_of
from calibrant.metrics.estimators.cumulative import ecce
from calibrant.metrics.inference.cumulative_test import range_pvalue
from calibrant.metrics.inference.group_test import group_findings, groups_differ


def drawn(weights, n=900, seed=0):
    rng = np.random.default_rng(seed)
    p, place = rng.uniform(0.05, 0.95, n), np.arange(n) % 3
    y = (rng.random(n) < expit(logit(p) * (0.6 + 0.4 * place) + 0.2 * place)) * 1.0
    w = {"none": None, "counts": rng.integers(1, 4, n) * 1.0, "fractions": rng.choice([0.5, 1.25], n)}[weights]
    return Pairs(p, y, w), place


@pytest.mark.parametrize("weights", ["none", "counts", "fractions"])
def test_rows_of_groups(weights):
    pairs, place = drawn(weights)
    found = group_findings(pairs, place, ["a", "b", "c"], 0.9, 99, np.random.default_rng(0))
    z = norm.ppf(1 - 0.1 / 3 / 2)
    strayed = []
    for g, row in enumerate(found.rows):
        part = pairs.take(place == g)
        w, s = part.weight_array, part.scores
        gap = np.average(part.outcomes - s, weights=w)
        whole = weights != "fractions"
        scale = np.sqrt(((w if whole else w**2) * s * (1 - s)).sum()) / w.sum()
        error = standard_error(part.outcomes - s, part)[0]
        reach = max(1 - (0.1 / 3 / 2) ** (1 / part.rows), z * max(error, scale))
        assert (row.gap, row.rows) == pytest.approx((gap, part.rows))
        assert (row.low, row.high) == pytest.approx((max(-1, gap - reach), min(1, gap + reach)))
        assert row.strayed == pytest.approx(ecce(part) / scale)
        assert row.detectable == pytest.approx((z + 0.84) * scale)
        assert not row.small
        if whole and row.floor == 0:
            assert row.pvalue == pytest.approx(min(1, 3 * range_pvalue(row.strayed)))
        strayed.append(row.strayed)
    assert found.worst == "abc"[int(np.argmax(strayed))]
    assert found.largest_gap == "abc"[int(np.argmax([abs(row.gap) for row in found.rows]))]


@pytest.mark.parametrize("weights", ["none", "counts", "fractions"])
def test_lines_of_their_own_are_tested_by_their_scores(weights):
    """uᵀV⁺u of residuals by group, and times log-odds, less what the common line explains: χ² with the rank of V."""
    pairs, place = drawn(weights, seed=1)
    x = logit(pairs.scores)
    w = pairs.weight_array * pairs.rows / pairs.total
    intercept, slope = line_of(pairs).fit.theta
    mean = expit(intercept + slope * x)
    v = w * mean * (1 - mean)
    common = np.column_stack([np.ones_like(x), x])
    own = np.column_stack([part for g in range(3) for part in ((place == g) * 1.0, (place == g) * x)])
    left = own - common @ np.linalg.solve((common.T * v) @ common, (common.T * v) @ own)
    u = left.T @ (w * (pairs.outcomes - mean))
    spread = (left.T * (v * w if weights == "fractions" else v)) @ left
    wanted = u @ np.linalg.pinv(spread, rcond=1e-8, hermitian=True) @ u
    found = groups_differ(pairs, place, 3)
    assert found.statistic == pytest.approx(wanted, rel=1e-6)
    assert found.pvalue == pytest.approx(chi2.sf(wanted, 4), rel=1e-5)


def test_groups_too_small_for_a_slope_have_an_intercept():
    """Σs(1-s) of 44 is enough: 176 rows of one half; with 175 a group has no slope of its own."""
    rng = np.random.default_rng(3)
    for rows, freedom in ((220, 2), (100, 1)):
        p = np.r_[rng.uniform(0.4, 0.6, rows), rng.uniform(0.05, 0.95, 60)]
        y = (rng.random(len(p)) < p) * 1.0
        place = np.repeat([0, 1], [rows, 60])
        found = groups_differ(Pairs(p, y), place, 2)
        assert found.pvalue == pytest.approx(chi2.sf(found.statistic, freedom), rel=1e-6)
