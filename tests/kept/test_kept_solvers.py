"""The places that solvers ask for on the way to an optimum are what they were: a worse step arrives, but later."""

import numpy as np
import pytest
from tests.kept.comparing import check
from tests.kept.test_kept_maps import classes

from calibrant.fits.mixing import ENSEMBLE, Mixing
from calibrant.fits.solvers.line import LineSums, newton_line
from calibrant.fits.solvers.many import minimise
from calibrant.fits.solvers.newton import Sums, newton
from calibrant.fits.solvers.quadratic import quadratic_step
from calibrant.fits.solvers.simplex import Sums as SimplexSums
from calibrant.fits.solvers.simplex import minimise_on_simplex
from calibrant.fits.solvers.valley import Valley
from calibrant.passes import Block, in_memory

LINES = {
    "parabola": lambda x: (0.5 * (x - 3) ** 2, x - 3, 1.0),
    "steep": lambda x: (np.cosh(x) - 1 + x, np.sinh(x) + 1, np.cosh(x)),
    "flat": lambda x: (np.sqrt(1 + x * x), x / np.sqrt(1 + x * x), (1 + x * x) ** -1.5),
    "hill": lambda x: (np.cos(x), -np.sin(x), -np.cos(x)),
    "falling": lambda x: (np.exp(-x), -np.exp(-x), np.exp(-x)),
    "wrong curvature": lambda x: ((x - 1) ** 4, 4 * (x - 1) ** 3, 0.5),
    "broken": lambda x: (np.exp(x) - 10 * x, np.exp(x) - 10, 1e-3) if x < 5 else (np.inf, np.nan, np.nan),
}


@pytest.mark.parametrize("name", LINES)
def test_one_unknown(name):
    found = {}
    for start, low, high, most in ((0.1, -20.0, 20.0, 200), (4.0, 2.0, 9.0, 200), (-3.0, -8.0, 30.0, 4)):
        asked = []

        def function(x, asked=asked):
            asked.append(x)
            return LineSums(*map(float, LINES[name](x)))

        for tolerance in (1e-3, 1e-12):
            ended = newton_line(function, start, tolerance, low, high, most=most)
            key = f"{start} {tolerance}"
            found[key] = {"end": list(ended), "asked": asked[:6], "all": np.array(asked)}
    check("solvers", f"line {name}", found)


def rosenbrock(x):
    a, b = x
    value = (1 - a) ** 2 + 100 * (b - a * a) ** 2
    gradient = np.array([-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)])
    return value, gradient, np.array([[2 - 400 * (b - 3 * a * a), -400 * a], [-400 * a, 200.0]])


def valley(x):
    value = float(np.log1p(x @ x) + 0.1 * x.sum() + 0.05 * (x**4).sum())
    size = 1 + x @ x
    gradient = 2 * x / size + 0.1 + 0.2 * x**3
    return value, gradient, 2 * np.eye(len(x)) / size - 4 * np.outer(x, x) / size**2 + np.diag(0.6 * x**2)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("function", [rosenbrock, valley])
def test_several_problems_at_once(function, bounded):
    asked = []

    def problem(theta, _):
        asked.append(theta.ravel())
        parts = [function(row) for row in theta]
        return Sums(*(np.array(part) for part in zip(*parts, strict=True)))

    start = np.array([[-1.2, 1.0], [0.3, -2.0], [4.0, 4.0]])
    bounds = {"low": np.full((3, 2), -1.5), "high": np.full((3, 2), 0.7)} if bounded else {}
    found = newton(problem, np.clip(start, -1.5, 0.7) if bounded else start, 1e-9, **bounds)
    told = {"theta": found.theta.ravel(), "passes": found.passes, "value": found.sums.value}
    few = newton(problem, start, 1e-2, most=5)
    check("solvers", f"newton {function.__name__} {bounded}", {**told, "few": few.theta, "all": np.concatenate(asked)})


@pytest.mark.parametrize("curvature", [1e-2, 1e-4, 1e-7, 1e-12])
def test_steps_that_are_far_too_long_are_cut_ever_more_boldly(curvature):
    asked = []

    def problem(theta, _):
        asked.append(theta.ravel().copy())
        with np.errstate(over="ignore", invalid="ignore"):
            value, slope = np.exp(theta[:, 0]) - 10 * theta[:, 0], np.exp(theta) - 10
        return Sums(value, slope, np.full((len(theta), 1, 1), curvature))

    found = newton(problem, np.array([[-2.0], [0.0], [1.0]]), 1e-9, most=40)
    told = {"theta": found.theta.ravel(), "passes": found.passes, "first": np.concatenate(asked[:5])}
    check("solvers", f"too long {curvature}", {**told, "all": np.concatenate(asked)})


@pytest.mark.parametrize("function", [rosenbrock, valley])
def test_many_unknowns(function):
    asked = []

    def objective(theta):
        asked.append(theta)
        value, gradient, _ = function(theta)
        return (value, gradient) if np.abs(theta).max() < 6 else (np.inf, gradient)

    found = {}
    for scale in (1e-3, 0.05, 30.0):
        start = np.array([-1.2, 1.0])
        ended = minimise(objective, start, objective(start), lambda v, scale=scale: scale * v, 1e-8, 60)
        found[str(scale)] = [*ended.theta, ended.value, ended.passes, ended.converged]
    check("solvers", f"many {function.__name__}", {**found, "all": np.concatenate(asked)})


def test_there_is_no_way_down_from_a_promise_that_no_step_keeps():
    """A gradient that lies: no step makes the value fall, so it ends where it began, after fifteen cuts."""
    start = np.array([1.0, -2.0])
    ended = minimise(lambda x: (float(np.abs(x - start).sum()), np.ones(2)), start, (0.0, np.ones(2)), np.copy, 1e-9)
    assert ended.theta.tolist() == start.tolist()
    assert ended.passes == 15
    assert not ended.converged


@pytest.mark.parametrize("d", [1, 2, 5])
def test_steps_within_bounds(d):
    rng = np.random.default_rng(d)
    roots = rng.normal(size=(30, d, d))
    hessian = roots @ roots.transpose(0, 2, 1) * np.geomspace(1e-3, 1e3, 30)[:, None, None]
    hessian[::5] -= 2 * np.einsum("gii->g", hessian)[::5, None, None] * np.eye(d) / d
    hessian[3] = 0.0
    gradient, length = rng.normal(size=(30, d)) * 5, np.full((30, d), 0.7)
    low, high = -rng.exponential(size=(30, d)), rng.exponential(size=(30, d))
    free = quadratic_step(hessian, gradient, np.full((30, d), -np.inf), np.full((30, d), np.inf), length)
    check("solvers", f"steps {d}", {"free": free, "bounded": quadratic_step(hessian, gradient, low, high, length)})


@pytest.mark.parametrize("k", [2, 4, 7])
def test_weights(k):
    rng = np.random.default_rng(k)
    columns, own = rng.dirichlet(np.ones(k), 80) + 1e-3, rng.exponential(size=80)
    asked = []

    def problem(w, _):
        asked.append(w.copy())
        mixed = columns @ w
        ratio = columns / mixed[:, None]
        return SimplexSums(-float(own @ np.log(mixed)), -(own @ ratio), (ratio * own[:, None]).T @ ratio)

    found = {}
    for name, start in (
        ("even", np.full(k, 1 / k)),
        ("corner", np.eye(k)[0]),
        ("edge", np.r_[0.5, 0.5, np.zeros(k)][:k]),
    ):
        for tolerance in (1e-2, 1e-10):
            ended = minimise_on_simplex(problem, start, tolerance)
            found[f"{name} {tolerance}"] = [*ended.weights[:3], ended.value, ended.passes, ended.converged]
    check("solvers", f"simplex {k}", {**found, "all": np.concatenate(asked)})


@pytest.mark.parametrize(("loss", "weighted"), [("nll", False), ("nll", True)])  # a last bit leads others elsewhere
def test_weights_and_a_temperature(loss, weighted):
    z, y = classes(300, 4, 9)
    w = np.random.default_rng(0).exponential(size=300) if weighted else None
    data, asked = in_memory(Block(z, y, w, 4)), []
    mixing = Mixing(ENSEMBLE, loss)

    def problem(weights, x):
        asked.append(np.r_[weights, x])
        return mixing.sums(data, weights, x)

    found = {}
    for start in (0.05, -0.4, 1.0):
        for most in (3, 60):
            ended = minimise_on_simplex(
                *(problem, np.array([0.7, 0.2, 0.1]), 1e-9),
                **{"beside": np.array([start]), "low": -4.0, "high": 4.0, "most": most, "valley": Valley(0, 1)},
            )
            found[f"{start} {most}"] = [*ended.weights, *ended.beside, ended.value, ended.passes]
    check("solvers", f"ensemble {loss} {weighted}", {**found, "all": np.concatenate(asked)})
