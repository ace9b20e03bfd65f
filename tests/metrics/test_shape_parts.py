"""The shape of a miscalibration: gaps, places and sides of few groups, in loops over all ranges."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant.cells.pairs import Pairs
from calibrant.metrics.inference import shape


def groups(seed, weighed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, 240)
    y = (rng.random(240) < np.where((p > 0.3) & (p < 0.6), 0.9, p)) * 1.0
    return shape._grouped(Pairs(p, y, rng.choice([0.5, 1.5], 240) if weighed else None), 12)


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_places_are_the_ranges_with_the_clearest_gaps(seed, weighed):
    found = groups(seed, weighed)
    scale, best = found.scale, {}
    for a in range(12):
        for b in range(a + 1, 13):
            part = slice(a, b)
            gap = (found.outcomes - found.weights * found.scores)[part].sum() * scale
            spread = (found.weights * found.scores * (1 - found.scores))[part].sum() * scale
            best[a, b] = gap / np.sqrt(spread)
    ends = {max(best, key=best.get), min(best, key=best.get)}
    clear = sorted(end for end in ends if abs(best[end]) >= 3.5)
    told = shape._places(found)
    assert [(one.low, one.high) for one in told] == [(found.edges[a], found.edges[b]) for a, b in clear]
    for one, (a, b) in zip(told, clear, strict=True):
        weight = found.weights[a:b].sum()
        assert one.rows == pytest.approx(weight * scale)
        assert one.score == pytest.approx((found.weights * found.scores)[a:b].sum() / weight)
        assert one.frequency == pytest.approx(found.outcomes[a:b].sum() / weight)
    assert len(clear) > 0


def test_a_gap_of_three_and_a_half_errors_is_clear():
    """Two groups: 196 rows of one half, of which 98 + 24.5 happen, are 3.5 deviations of 7 off."""
    for happened, clear in ((122.5, True), (122.4, False)):
        two = shape._Groups(
            np.array([0.5, 0.9]), np.array([196.0, 1e-9]), np.array([happened, 0.9e-9]), np.arange(3.0), 1.0
        )
        assert bool(shape._places(two)) is clear


@pytest.mark.parametrize("weighed", [False, True])
def test_pearsons_statistic_is_about_a_line_and_less_its_degrees(weighed):
    found, line = groups(1, weighed), (0.2, 0.7)
    p = expit(0.2 + 0.7 * logit(found.scores))
    n = found.weights * found.scale
    wanted = (((found.outcomes * found.scale - n * p) ** 2) / (n * p * (1 - p))).sum() - 10
    assert shape._left(found, line) == pytest.approx(wanted)


def test_sides_are_the_rows_below_and_above_a_crossing():
    found = groups(2, True)
    crossing = expit(-0.3 / (0.5 - 1))
    below, above = shape._sides(found, (0.3, 0.5))
    for one, own in ((below, found.scores < crossing), (above, found.scores >= crossing)):
        weight = found.weights[own].sum()
        assert one.rows == pytest.approx(weight * found.scale)
        assert one.score == pytest.approx((found.weights * found.scores)[own].sum() / weight)
        assert one.frequency == pytest.approx(found.outcomes[own].sum() / weight)
    assert (below.low, below.high, above.low, above.high) == (found.edges[0], crossing, crossing, found.edges[-1])
    assert shape._sides(found, (9.0, 0.5)) == shape._sides(found, (-9.0, 0.5)) == ()


@pytest.mark.parametrize(
    ("curve", "kind"),
    [
        (lambda x: x + 0.7, "too_low"),
        (lambda x: x - 0.7, "too_high"),
        (lambda x: 0.4 * x, "too_extreme"),
        (lambda x: 2.5 * x, "too_timid"),
        (lambda x: -0.8 * x, "upside_down"),
        (lambda x: np.where((x > 0) & (x < 1), x + 2.5, x), "in_places"),
    ],
)
def test_curves_have_the_shapes_of_their_names(curve, kind):
    """Frequencies to the row: half a million rows in two hundred scores, so that no chance decides."""
    x = np.linspace(-3, 3, 200)
    n = 2500.0
    happened = np.round(n * expit(curve(x)))
    pairs = Pairs(np.repeat(expit(x), 2), np.tile([1.0, 0.0], 200), np.stack([happened, n - happened], axis=1).ravel())
    found = shape.shape_of(pairs)
    assert found.kind == kind
    if kind in ("too_low", "too_high"):
        assert [one.rows for one in found.ranges] == [pytest.approx(500_000)]
    elif kind != "in_places":
        assert found.ranges[0].high == pytest.approx(0.5, abs=1e-3)
    else:
        assert len(found.ranges) >= 1
        assert max(found.ranges, key=lambda one: one.frequency - one.score).low == pytest.approx(0.5, abs=0.06)
