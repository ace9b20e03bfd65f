"""Parts of curves of one score by themselves, against their definitions in loops."""

import numpy as np
import pytest
from scipy.special import expit, log_expit, logit

from calibrant.arrays import weighted_quantiles
from calibrant.cells.fine import cells_of_scores
from calibrant.maps.binary import quadratic
from calibrant.maps.binary._natural_spline import NaturalSpline
from calibrant.maps.binary._regression import CellRegression, smooth_outcomes, smooth_pair
from calibrant.maps.binary.isotonic_centred import _off_the_ends
from calibrant.maps.binary.logit_spline import _written, most_evident, spread
from calibrant.maps.binary.pieces import clipped, one_outcome


def cells(seed, n=40):
    rng = np.random.default_rng(seed)
    x = rng.integers(-12, 13, n) / 4
    return cells_of_scores(x, (rng.random(n) < expit(x)) * 1.0, rng.choice([0.5, 1.0, 3.0], n))


def answered(knots, pieces, x):
    """Return what polynomials from knot to knot are at x."""
    place = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 1)
    t = x - knots[place]
    return (pieces[place] * t[:, None] ** np.arange(4)).sum(axis=1)


@pytest.mark.parametrize("smoothing", [0.25, 1.0, 6.0])
def test_steps_of_zero_and_one_are_moved_by_a_pseudo_count(smoothing):
    weights = np.array([3.0, 2.0, 5.0])
    for levels in ([0.0, 0.5, 1.0], [0.0, 0.01, 0.99], [0.2, 0.5, 1.0], [0.0, 0.5, 0.6], [0.2, 0.3, 0.4]):
        wanted = list(levels)
        if levels[0] == 0:
            wanted[0] = min(smoothing / 2 / (3 + smoothing), levels[1])
        if levels[2] == 1:
            wanted[2] = max(1 - smoothing / 2 / (5 + smoothing), levels[1])
        np.testing.assert_allclose(_off_the_ends(np.array(levels), weights, smoothing), wanted)
    for level in (0.0, 1.0):
        only = _off_the_ends(np.array([level]), np.array([4.0]), smoothing)
        assert only == pytest.approx([abs(level - smoothing / 2 / (4 + smoothing))])


def test_scores_beyond_a_clip_become_one_cell_at_either_end():
    for seed in range(8):
        given = cells(seed)
        for clip in (0.25, 1.0, 2.0, -given.scores[0], given.scores[-1], 3.0, 9.0):
            found = clipped(given, clip)
            held = np.clip(given.scores, -clip, clip)
            values = np.unique(held)
            assert found.scores.tolist() == values.tolist()
            assert found.weights.tolist() == [given.weights[held == v].sum() for v in values]
            assert found.outcomes.tolist() == [given.outcomes[held == v].sum() for v in values]
            assert (found is given) == (given.scores[0] >= -clip and given.scores[-1] <= clip)
            assert ((found.scores[:-1] < found.cuts) & (found.cuts <= found.scores[1:])).all() or found is not given


def test_one_outcome_alone_is_a_shift_of_the_mean():
    x, w = np.array([-1.0, 0.5, 2.0]), np.array([1.0, 2.0, 0.5])
    for happened in (0.0, 1.0):
        found = one_outcome(cells_of_scores(x, np.full(3, happened), w), -3.0, 4.0)
        shift = logit((3.5 * happened + 0.5) / 4.5) - np.average(x, weights=w)
        at = np.array([-3.0, 0.0, 2.0, 4.0])
        np.testing.assert_allclose(answered(found.knots, found.pieces, at), at + shift)
        assert tuple(found[2:4]) == (0, True)  # no pass, and arrived
    assert one_outcome(cells_of_scores(x, np.array([0.0, 1.0, 0.0]), w), -3.0, 4.0) is None


@pytest.mark.parametrize("seed", range(4))
def test_a_parabola_is_written_as_it_is_fitted(seed):
    rng = np.random.default_rng(seed)
    centre, scale = rng.normal(), 0.5 + rng.random()
    left, right = -1.25, 1.5
    theta = np.array([0.3, 0.75, 1.5]) * rng.random(3)
    knots = np.unique(np.r_[-6.0, centre + scale * np.array([left, right]), 7.0])
    x = np.linspace(-6, 7, 90)
    t = (x - centre) / scale
    slope = np.interp(t, [left, right], theta[1:])  # the slope is linear between the ends
    inside = np.clip(t, left, right)
    value = quadratic.bends(t, left, right) @ theta
    np.testing.assert_allclose(np.gradient(value, t)[1:-1], slope[1:-1], atol=0.1)
    at_zero = theta[0] + (right * inside - inside**2 / 2) / (right - left) * theta[1]
    at_zero += (inside**2 / 2 - left * inside) / (right - left) * theta[2] + (t - inside) * slope
    np.testing.assert_allclose(value, at_zero, atol=1e-12)
    pieces = quadratic._pieces(knots, theta, (centre, scale), (left, right))
    np.testing.assert_allclose(answered(knots, pieces, x), value, atol=1e-12)
    b, a, c = quadratic._in_log_odds(theta, (centre, scale), (left, right))
    middle = (t > left) & (t < right)
    np.testing.assert_allclose((b + a * x + c * x * x)[middle], value[middle], atol=1e-12)
    for size in (1, 2):
        line = theta[0] + (theta[1] * t if size > 1 else 0.0 * t)
        ends = np.array([-6.0, 7.0])
        pieces = quadratic._pieces(ends, theta[:size], (centre, scale), None)
        np.testing.assert_allclose(answered(ends, pieces, x), line, atol=1e-12)
        b, a, c = quadratic._in_log_odds(theta[:size], (centre, scale), None)
        np.testing.assert_allclose(b + a * x, line, atol=1e-12)
        assert c == 0


@pytest.mark.parametrize("reach", [(-6.0, 7.0), (-0.3, 0.9), (-6.0, 0.9), (-0.3, 7.0)])
def test_a_spline_is_written_as_it_is_fitted(reach):
    """Cubic between the knots, straight beyond them, to either end of the reach."""
    rng = np.random.default_rng(1)
    spline, unit = NaturalSpline(np.array([-1.0, 0.0, 0.5, 2.0])), (0.2, 0.5)
    theta = rng.normal(size=4)
    knots, pieces = _written(spline, theta, unit, reach)
    assert (knots[0], knots[-1]) == (min(reach[0], -0.3), max(reach[1], 1.2))
    x = np.linspace(knots[0], knots[-1], 70)
    np.testing.assert_allclose(answered(knots, pieces, x), spline((x - 0.2) / 0.5) @ theta, atol=1e-10)
    flat, level = _written(None, theta[:1], unit, reach)
    assert flat.tolist() == list(reach)
    np.testing.assert_allclose(answered(flat, level, np.array([*reach, 0.1])), theta[0])


def test_knots_lie_at_equal_steps_of_the_share_of_either_outcome():
    for seed in range(6):
        given, centre, scale = cells(seed), 0.25, 1.5
        yes, no = given.outcomes, given.weights - given.outcomes
        share = np.cumsum(yes / yes.sum() / 2 + no / no.sum() / 2)
        wanted = []
        for step in np.linspace(0.005, 0.995, 6) * share[-1]:
            place = (given.scores[np.flatnonzero(share >= step)[0]] - centre) / scale
            if not wanted or place > wanted[-1]:
                wanted.append(place)
        np.testing.assert_allclose(spread(given, 6, centre, scale), wanted)
    few = cells_of_scores(np.r_[-2.0, np.full(1000, 0.5), 3.0], np.r_[0.0, np.tile([0.0, 1.0], 500), 1.0])
    np.testing.assert_allclose(spread(few, 4, 0.5, 2.0), [-1.25, 1.25])  # one place is no spline: both ends


def test_quantiles_of_counts_are_those_of_repeated_rows():
    rng = np.random.default_rng(0)
    for _ in range(30):
        n = int(rng.integers(1, 8))
        x, counts = np.sort(rng.normal(size=n)), rng.integers(1, 4, n)
        at = np.array([0.0, 0.005, 0.25, 0.5, 0.7, 0.995, 1.0])
        np.testing.assert_allclose(weighted_quantiles(x, counts * 1.0, at), np.quantile(np.repeat(x, counts), at))


def test_targets_are_smoothed_by_a_count_at_either_end():
    assert smooth_pair(6.0, 3.0, 1.0) == pytest.approx((1 / 5, 7 / 8))
    assert smooth_pair(6.0, 3.0, 0.25) == pytest.approx((0.25 / 3.5, 6.25 / 6.5))
    assert smooth_pair(6.0, 3.0, 0) == (0.0, 1.0)
    given = cells(3)
    low, high = smooth_pair(given.outcomes.sum(), (given.weights - given.outcomes).sum(), 2.0)
    wanted = high * given.outcomes + low * (given.weights - given.outcomes)
    np.testing.assert_allclose(smooth_outcomes(given, 2.0), wanted)
    assert smooth_outcomes(given, 0) is given.outcomes


def regression(strengths):
    given = cells(5)
    root = np.array([[0.0, 1.0, 2.0], [0.0, 0.5, -1.0]])
    features = np.stack([np.ones(given.count), given.scores, given.scores**2 / 4], axis=1)
    return CellRegression(features, given.weights, given.outcomes, root.T @ root, np.array(strengths))


def test_a_regression_has_the_derivatives_of_its_penalised_loss():
    problem, theta = regression([0.5, 4.0, 9.0]), np.random.default_rng(2).normal(size=(3, 3))

    def loss(g, at):
        z = problem.features @ at
        likelihood = problem.outcomes @ log_expit(z) + (problem.weights - problem.outcomes) @ log_expit(-z)
        return -likelihood + 0.5 * problem.strengths[g] * at @ problem.penalty @ at

    found = problem(theta, np.array([True, False, True]))
    assert not found.value[1]
    assert not found.gradient[1].any()
    assert not found.hessian[1].any()
    for g in (0, 2):
        assert found.value[g] == pytest.approx(loss(g, theta[g]))
        for i, away in enumerate(1e-5 * np.eye(3)):
            up, down = (problem(theta + sign * away, np.ones(3, bool)) for sign in (1, -1))
            assert found.gradient[g, i] == pytest.approx((up.value[g] - down.value[g]) / 2e-5, rel=1e-5, abs=1e-5)
            np.testing.assert_allclose(
                found.hessian[g, i], (up.gradient[g] - down.gradient[g]) / 2e-5, rtol=1e-5, atol=1e-5
            )


def test_the_most_evident_strength_is_the_top_of_the_evidence():
    """Through the three highest runs a parabola in log κ, whose top it is."""
    strengths = np.geomspace(1e-3, 1e3, 13)
    problem = regression(strengths)
    found = problem.solve()
    bend = np.linalg.slogdet(found.sums.hessian)[1]
    evidence = -found.sums.value + 0.5 * np.log(strengths) - 0.5 * bend
    best = int(evidence.argmax())
    strength, passes = most_evident(problem)
    assert passes == found.passes
    if best in (0, 12):
        assert strength == pytest.approx(strengths[best])
    else:
        a, b, _ = np.polyfit(np.log(strengths[best - 1 : best + 2]), evidence[best - 1 : best + 2], 2)
        assert np.log(strength) == pytest.approx(-b / (2 * a), rel=1e-6)
    edge = regression(strengths[best : best + 3] if best < 11 else strengths[best - 2 : best + 1])
    assert most_evident(edge)[0] == pytest.approx(strengths[best])


@pytest.mark.parametrize("happened", [0.0, 1.0])
def test_coefficients_of_one_outcome_are_a_shift(happened):
    """b + aλ + cλ² is what the curve answers, from one end to the other."""
    given = cells_of_scores(np.array([-1.0, 0.5, 2.0]), np.full(3, happened), np.array([1.0, 2.0, 0.5]))
    curve = quadratic.QuadraticScaling()._curve(given, -3.0, 4.0)
    b, a, c = curve.state["coefficients_"]
    x = np.linspace(-3, 4, 8)
    np.testing.assert_allclose(answered(curve.knots, curve.pieces, x), b + a * x + c * x * x)
    assert (a, c) == (1.0, 0.0)
