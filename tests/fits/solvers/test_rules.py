"""The rules of the solvers, as their comments have them, in plain loops: the same places on landscapes of few numbers.

Values, slopes and curvatures are drawn from few numbers, powers of ten and sums of them, so that bounds are met to the
last bit; where a solver asks does not decide what it is told, so that steps are cut, taken and refused in all orders.
"""

import math

import numpy as np
import pytest

from calibrant.fits.solvers import many, simplex
from calibrant.fits.solvers.line import LineSums, newton_line
from calibrant.fits.solvers.newton import Sums, newton
from calibrant.fits.solvers.quadratic import quadratic_step

LEVEL = 1e7  # of which single precision knows no more than 1
VALUES = [
    LEVEL,
    LEVEL,
    LEVEL - 1,
    LEVEL + 1,
    LEVEL - 0.5,
    LEVEL - 2,
    LEVEL - 1e4,
    0.0,
    1.0,
    -1.0,
    5e3,
    -1e4,
    1e9,
    math.inf,
    math.nan,
]
SLOPES = [100.0, -100.0, 70.0, 50.0, 35.0, 25.0, -25.0, 10.0, 1.0, 0.0, 0.0, 200.0, math.nan]
CURVATURES = [1.0, 1.0, -1.0, 2.0, 4.0, 0.5, 0.0, math.inf]
TOLERANCES = [0.0, 1.0, 100.0, 2500.0, 1e4]


def script(rng):
    """Return what a solver is told, time after time."""
    size = 60
    found = [rng.choice(some, size) for some in (VALUES, SLOPES, CURVATURES)]
    found[0][0], found[1][0] = rng.choice(VALUES[:9]), rng.choice(SLOPES[:7])  # most searches go further than a pass
    return np.column_stack(found)


def shortened(promised, rise, least, most):
    """Return the minimum of the parabola through what is known, as a part of the step."""
    return float(np.clip(promised / (2 * rise) if rise > 0 else 0.0, least, most))


def lower(here, there, step, promised, decrease, level):
    """Whether a step is taken: it brings its ten-thousandth, or halves the slope where values hardly differ."""
    if not np.isfinite(there).all():
        return False
    flatter = abs(there[0] - here[0]) <= level and abs(there[1] * step) <= 0.5 * decrease
    return there[0] <= here[0] - 1e-4 * promised or flatter


def aimed(x, here, low, high):
    """Return Newton's step of one unknown between bounds, and the decrease that it promises."""
    value, slope, curvature = here
    if math.isfinite(curvature) and curvature != 0:
        length = -slope / abs(curvature)
    else:
        length = -np.sign(slope) * max(1.0, abs(x))
    step = min(max(length, low - x), high - x)
    promised = -slope * step
    return (step, max(promised, 0.0)) if math.isfinite(promised) and math.isfinite(value) else (0.0, 0.0)


def plain_newton(told, start, tolerance, low, high, most, shortest):
    """Newton for one unknown, as `newton` says."""
    x, told = min(max(start, low), high), iter(told)
    here, asked, cuts, size = next(told), [x], 0, 1.0
    step, decrease = aimed(x, here, low, high)
    finite = bool(np.isfinite(here).all())

    def exhausted():
        return size * decrease <= 1e-15 * abs(here[0])

    while len(asked) < most and decrease > tolerance and not exhausted():
        trial = min(max(x + size * step, low), high)
        asked.append(trial)
        there, promised = next(told), size * decrease
        finite = bool(np.isfinite(there).all())
        if lower(here, there, step, promised, decrease, max(1e-7 * abs(here[0]), 100 * tolerance)):
            x, here, size, cuts = trial, there, 1.0, 0
            step, decrease = aimed(x, here, low, high)
            continue
        rise = there[0] - here[0] + promised if finite else math.inf
        if cuts < 3:
            size *= shortened(promised, rise, shortest if finite else 0.1, 0.5)
        else:
            size *= shortened(promised, rise, 0.1 ** (2.0 ** min(cuts - 2, 8)), 0.1)
        cuts += 1
    arrived = decrease <= tolerance and bool(np.isfinite(here).all())
    bend = here[2] * step if arrived else 0.0
    if arrived and 0.1 * decrease <= step * bend <= 2 * decrease:
        end = (min(max(x + step, low), high), here[0] - decrease + 0.5 * step * bend, here[1] + bend)
    else:
        end = (x, *here[:2])
    return asked, end, arrived or (exhausted() and finite)


@pytest.mark.parametrize("shortest", [0.1, 0.01])
def test_newton_for_many_follows_its_rules(shortest):
    rng = np.random.default_rng(int(100 * shortest))
    count, most = 400, 25
    told = np.array([script(rng) for _ in range(count)])
    start, tolerance = rng.choice([0.0, 3.0, -200.0, 40.0], count), rng.choice(TOLERANCES, count)
    low, high = rng.choice([-np.inf, -50.0, 0.0], count), rng.choice([np.inf, 50.0, 7.0], count)
    asked = [[] for _ in range(count)]
    calls = np.zeros(count, dtype=int)

    def problem(theta, wanted):
        found = np.array([told[g, calls[g]] for g in range(count)])
        for g in np.flatnonzero(wanted):
            asked[g].append(float(theta[g, 0]))
            calls[g] += 1
        return Sums(found[:, 0], found[:, 1:2], found[:, 2, None, None])

    bounds = {"low": low[:, None], "high": high[:, None]}
    found = newton(problem, start[:, None], tolerance, **bounds, most=most, shortest=shortest)
    longest = 0
    for g in range(count):
        places, end, converged = plain_newton(told[g], start[g], tolerance[g], low[g], high[g], most, shortest)
        np.testing.assert_allclose(asked[g], places, rtol=1e-12, err_msg=str(g))
        seen = (found.theta[g, 0], found.sums.value[g], found.sums.gradient[g, 0])
        np.testing.assert_allclose(seen, end, rtol=1e-12, atol=1e-12, err_msg=str(g))
        assert found.converged[g] == converged
        longest = max(longest, len(places))
    assert found.passes == longest


def plain_line(told, start, tolerance, low, high, most, known):
    """The same as `newton_line` says it: cuts of .1 to .5, and a last step wherever curvature is no more than twice."""
    x, told = min(max(start, low), high), iter(told)
    here, asked, passes, size = next(told), [] if known else [x], int(not known), 1.0
    step, decrease = _line_aim(x, here, low, high)
    while decrease > tolerance and passes < most and size * decrease > 1e-16 * abs(here[0]):
        trial = min(max(x + size * step, low), high)
        asked.append(trial)
        there, promised, passes = next(told), size * decrease, passes + 1
        if lower(here, there, step, promised, decrease, max(1e-7 * abs(here[0]), tolerance)):
            x, here, size = trial, there, 1.0
            step, decrease = _line_aim(x, here, low, high)
        else:
            size *= shortened(
                promised, there[0] - here[0] + promised if np.isfinite(there).all() else math.inf, 0.1, 0.5
            )
    if decrease > tolerance:
        return asked, (x, here[0]), passes, passes < most
    if not here[2] * step * step <= 2 * decrease:
        return asked, (x, here[0]), passes, True
    value = here[0] - decrease + 0.5 * max(here[2], 0.0) * step * step
    return asked, (min(max(x + step, low), high), value), passes, True


def _line_aim(x, here, low, high):
    _, slope, curvature = here
    length = slope / abs(curvature) if curvature != 0 else math.copysign(max(1.0, abs(x)), slope)
    if slope == 0 or not math.isfinite(length):
        return 0.0, 0.0
    step = min(max(x - length, low), high) - x
    return step, max(-slope * step, 0.0)


@pytest.mark.parametrize("known", [False, True])
def test_newton_for_one_unknown_follows_its_rules(known):
    rng = np.random.default_rng(7)
    for _ in range(800):
        told, start = script(rng), rng.choice([0.0, 3.0, -200.0, 40.0])
        told[0] = np.nan_to_num(told[0], nan=1.0, posinf=2.0)
        low, high = rng.choice([-np.inf, -50.0, 0.0]), rng.choice([np.inf, 50.0, 7.0])
        tolerance, most = rng.choice(TOLERANCES), int(rng.choice([3, 25]))
        asked, rest = [], iter(told[int(known) :].tolist())

        def function(x, asked=asked, rest=rest):
            asked.append(x)
            return LineSums(*next(rest))

        first = LineSums(*told[0].tolist()) if known else None
        found = newton_line(function, start, tolerance, low, high, first, most)
        places, end, passes, converged = plain_line(told.tolist(), start, tolerance, low, high, most, known)
        np.testing.assert_allclose(asked, places, rtol=1e-12)
        np.testing.assert_allclose((found.x, found.value), end, rtol=1e-12, atol=1e-12)
        assert (found.passes, found.converged) == (passes, converged)


def test_a_search_of_many_cuts_its_steps_by_its_rules():
    rng = np.random.default_rng(3)
    for _ in range(800):
        told = script(rng)[:, :2]
        told[0] = np.nan_to_num(told[0], nan=1.0, posinf=2.0)
        value, slope, asked = told[0, 0], -abs(told[0, 1]) - 1.0 * (told[0, 1] == 0), []
        rest = iter(told[1:])

        def objective(theta, asked=asked, rest=rest):
            asked.append(float(theta[0]))
            found = next(rest)
            return found[0], np.array([found[1]])

        step, found, used = many._search(objective, np.zeros(1), value, slope, np.ones(1))
        size, wanted = 1.0, None
        for count in range(1, 16):
            assert asked[count - 1] == pytest.approx(size, rel=1e-12)
            there = told[count]
            if not np.isfinite(there).all():
                size *= 0.1**count
                continue
            flatter = abs(there[0] - value) <= 1e-7 * abs(value) and abs(there[1]) <= -0.5 * slope
            if there[0] <= value + 1e-4 * size * slope or flatter:
                wanted = (size, there[0], count)
                break
            size *= shortened(-size * slope, there[0] - value - size * slope, 0.1**count, 0.5)
        assert len(asked) == used
        if wanted is None:
            assert (step, found, used) == (0.0, None, 15)
        else:
            assert (step, found[0], used) == pytest.approx(wanted)


@pytest.mark.parametrize("remembered", [1, 2, 5])
def test_two_loops_are_the_updates_of_the_inverse(rng, remembered):
    """H ← (1 - ρsyᵀ)H(1 - ρysᵀ) + ρssᵀ, from the metric times yᵀs/yᵀMy of the last pair (Nocedal and Wright, 7.16)."""
    root = rng.normal(size=(6, 6))
    metric = root @ root.T + np.eye(6)
    history = many.deque()
    for _ in range(remembered):
        moved = rng.normal(size=6)
        change = moved * rng.uniform(0.5, 3, 6)
        history.append(many._Pair(moved, change, metric @ change, float(moved @ change)))
    last = history[-1]
    inverse = metric * (last.change @ last.moved) / (last.change @ metric @ last.change)
    for pair in history:
        left = np.eye(6) - np.outer(pair.moved, pair.change) / pair.curvature
        inverse = left @ inverse @ left.T + np.outer(pair.moved, pair.moved) / pair.curvature
    gradient = rng.normal(size=6)
    np.testing.assert_allclose(many._two_loops(gradient, metric @ gradient, history), -inverse @ gradient)


def test_a_descent_leaves_what_does_not_lead_down():
    gradient = np.array([3.0, -4.0])
    down = many._Pair(np.array([1.0, 0.0]), np.array([1.0, 0.0]), np.array([1.0, 0.0]), 1.0)
    for history, scaled, wanted in (
        ([], gradient, (-gradient, -25.0)),
        ([], -gradient, (-gradient / 4, -6.25)),  # the metric leads up: one in the steepest unknown
        ([], np.array([np.nan, 0.0]), (-gradient / 4, -6.25)),
        ([], np.array([4.0, 3.0]), (-gradient / 4, -6.25)),  # level
        ([down], gradient, (-gradient, -25.0)),
        ([down], np.array([0.0, 1e3]), (-gradient / 4, -6.25)),  # what is remembered leads up, and so does the metric
    ):
        remembered = many.deque(history)
        found, slope = many._descent(gradient, scaled, remembered)
        np.testing.assert_allclose(found, wanted[0])
        assert slope == pytest.approx(wanted[1])
        assert len(remembered) == (1 if history and wanted[1] == -25.0 else 0)
    found, slope = many._descent(np.zeros(2), np.zeros(2), many.deque())
    assert (found.tolist(), slope) == ([0.0, 0.0], 0.0)


def faces(gram, slope, low, high):
    """Return the least point of a convex quadratic in a box, by every choice of unknowns on a bound."""
    d, best = len(slope), (np.inf, np.zeros(len(slope)))
    for choice in np.ndindex(*(3,) * d):
        side = np.array(choice) - 1
        fixed = np.where(side < 0, low, np.where(side > 0, high, 0.0))
        if not np.isfinite(fixed).all():
            continue
        x, free = fixed.copy(), side == 0
        if free.any():
            right = -slope[free] - gram[np.ix_(free, ~free)] @ fixed[~free]
            x[free] = np.linalg.solve(gram[np.ix_(free, free)], right)
        if (x >= low - 1e-9).all() and (x <= high + 1e-9).all():
            best = min(best, (float(slope @ x + 0.5 * x @ gram @ x), x), key=lambda one: one[0])
    return best[1]


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_a_step_within_bounds_is_the_best_of_all_faces(d):
    rng = np.random.default_rng(d)
    count = 60
    roots = np.tril(rng.integers(-3, 4, (count, d, d)), -1) + 4.0 * np.eye(d)
    unit = 10.0 ** rng.integers(-3, 4, (count, 1, d))
    gram = roots.transpose(0, 2, 1) @ roots * unit * unit.transpose(0, 2, 1)
    gradient = rng.integers(-8, 9, (count, d)) * unit[:, 0]
    low, high = -rng.choice([0.0, 0.25, 1.0, np.inf], (2, count, d)) / unit[:, 0]
    found = quadratic_step(gram, gradient, low, -high, np.ones((count, d)))
    for g in range(count):
        wanted = faces(gram[g], gradient[g], low[g], -high[g])
        np.testing.assert_allclose(found[g] * unit[g, 0], wanted * unit[g, 0], atol=1e-9)


def test_what_nothing_measures_moves_by_its_length():
    """Curvature that is zero or no number: every unknown moves down its slope by its length, to its bound at most."""
    gradient = np.array([[4.0, -0.25, 0.0], [1e-9, 1e9, -1.0], [1.0, -1.0, 1.0]])
    hessian = np.zeros((3, 3, 3))
    hessian[1, 0, 1] = np.nan
    hessian[2, 2, 2] = np.inf
    length, high = np.array([[2.0, 3.0, 5.0]] * 3), np.full((3, 3), 4.0)
    found = quadratic_step(hessian, gradient, np.full((3, 3), -np.inf), high, length)
    np.testing.assert_allclose(found, [[-2.0, 3.0, 0.0], [-2.0, -3.0, 4.0], [-2.0, 3.0, -5.0]])


@pytest.mark.parametrize(
    ("value", "along", "taken"),
    [
        (LEVEL - 1.0, 1e4, True),  # it brings its ten-thousandth
        (LEVEL - 0.9, 5001.0, False),
        (LEVEL - 0.9, 5000.0, True),  # it halves the slope, where values differ by rounding
        (LEVEL + 1.0, -5000.0, True),
        (LEVEL + 1.0, -5001.0, False),
        (LEVEL + 1.01, 0.0, False),
    ],
)
def test_steps_of_weights_are_taken_by_their_rules(value, along, taken):
    step = simplex._Step(np.array([1.0, -1.0]), np.array([2.0]), 1e4, True)
    here = simplex.Sums(LEVEL, np.zeros(3), np.zeros((3, 3)))
    gradient = along * np.array([0.5, 0.0, 0.25])
    assert simplex._is_better(here, simplex.Sums(value, gradient, np.zeros((3, 3))), step, 1.0) is taken


def test_a_weight_is_missed_where_it_pays_by_more_than_the_mean_slope():
    w = np.array([0.5, 0.5, 0.0])
    for slopes, missed in (([1, 3, 0], False), ([1, 3, -0.01], True), ([-1, -3, -4], False), ([-1, -3, -4.01], True)):
        sums = simplex.Sums(0.0, np.array([*slopes, 99.0]), np.zeros((4, 4)))
        assert simplex._missed(sums, w, w == 0.0) is missed
        assert simplex._missed(sums, w, np.zeros(3, bool)) is False


@pytest.mark.parametrize(
    ("value", "promised", "part"),
    [(2.0, 1.0, 0.25), (3.0, 5.0, 5 / 14), (1e9, 1.0, 0.1), (0.0, 3.0, 0.5), (-2.0, 1.0, 0.1), (np.inf, 1.0, 0.1)],
)
def test_steps_of_weights_are_cut_to_the_least_point_of_a_parabola(value, promised, part):
    here, there = (simplex.Sums(at, np.zeros(1), np.zeros((1, 1))) for at in (1.0, value))
    assert simplex._cut(here, there, promised) == pytest.approx(part)


def test_unknowns_beside_weights_go_to_their_bound_or_the_end_of_their_reach():
    x = np.array([0.0, 1.0])
    for step, part in (([0.5, 0.5], 1.0), ([4.0, 0.1], 0.5), ([-1.0, -4.0], 0.25), ([0.0, 3.0], 2 / 3), ([0, 0], 1.0)):
        assert simplex._share(np.array(step), x, -0.25, 3.0) == pytest.approx(part)
    assert simplex._share(np.zeros(0), np.zeros(0), -1.0, 1.0) == 1.0


def test_curvature_beside_weights_is_made_to_curve_up_and_keeps_steps_within_reach(rng):
    """|H|⁻¹ in H's own directions; where the step would be longer than 2, as much curvature as makes it 2."""
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    for values, slopes, used, sound in (
        ((4.0, 2.0, 1.0), (1.0, 2.0, -1.0), (4.0, 2.0, 1.0), True),
        ((-4.0, 2.0, 1.0), (1.0, 2.0, -1.0), (4.0, 2.0, 1.0), False),
        ((4.0, 0.25, 1.0), (1.0, 2.0, -1.0), (4.0, 1.0, 1.0), False),  # two of slope: curvature one
        ((4.0, 0.0, 1.0), (1.0, 0.0, -1.0), (4.0, 4e-10, 1.0), False),
    ):
        inverse, good = simplex._inverse((turn * values) @ turn.T, turn @ np.array(slopes))
        np.testing.assert_allclose(turn.T @ inverse @ turn * np.array(used), np.eye(3), rtol=1e-5, atol=1e-5)
        if sound:
            assert good in (True, False)  # rounding of the turn may tell either
        else:
            assert good is False
    inverse, good = simplex._inverse(np.diag([4.0, 2.0]), np.array([1.0, 1.0]))
    assert good is True
    np.testing.assert_allclose(inverse, np.diag([0.25, 0.5]))
    inverse, good = simplex._inverse(np.zeros((2, 2)), np.zeros(2))
    assert not inverse.any()
