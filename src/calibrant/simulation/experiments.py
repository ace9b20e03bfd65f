"""Experiments on estimators: how wrong is each of them where the truth is known?

Samples depend on the seed, n and the number of repeats alone, so estimators are compared on the same draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..cells.pairs import Pairs
from ..errors import InvalidInput
from ..metrics.estimators.calibration_error import ESTIMATORS, check_estimator, check_options
from ..metrics.inference.replicates import from_rows
from ..parameters import Instance, Integer, Number, OneOf, check_value, count_from, generator, is_one_of
from ..progress import Progress, reporting
from ..types import Array, Integers
from ..validation import as_array, as_numbers
from .controls import adjusted_mean, control_deviations, numbers
from .distributions import ScoreDistribution, Uniform
from .scenario import Draw, Scenario, power_scenario

# Scores drawn at a time: enough to make each call worth it, little enough to stay in memory.
BLOCK = 1_000_000
ROWS = Integer(1, 10**9)


@dataclass(frozen=True, eq=False)
class Result:
    """Estimates and the truth they aim at."""

    scenario: Scenario
    n: tuple[int, ...]
    bins: tuple[Any, ...]
    truth: float
    estimates: Array  # (bins, n, repeats)
    # (n, repeats, 6): controls of each sample less their expectation (see `calibrant.simulation.controls`).
    deviations: Array

    def bias(self) -> Array:
        """Mean estimate less the truth (paper 003, Eq. 7), shape (bins, n); the mean is helped by control variates."""
        return self._means()[..., 0] - self.truth

    def standard_error(self) -> Array:
        """Standard error of the bias, shape (bins, n)."""
        return self._means()[..., 1]

    def variance(self) -> Array:
        """Variance over repeats, shape (bins, n)."""
        return self.estimates.var(axis=2, ddof=1)

    def absolute_error(self) -> Array:
        """Mean |estimate - truth|, shape (bins, n)."""
        return np.abs(self.estimates - self.truth).mean(axis=2)

    def _means(self) -> Array:
        rows = [[adjusted_mean(e, d) for e, d in zip(row, self.deviations, strict=True)] for row in self.estimates]
        return np.array(rows)


def run(
    scenario: Scenario,
    *,
    n: int | Sequence[int] = (200,),
    bins: int | Sequence[int] = (15,),
    estimator: str | Callable[..., float] = "binned",
    edges: str | None = None,
    norm: int | str = 2,
    repeats: int = 1000,
    random_state: int = 0,
    progress: Progress | bool = True,
    **options: Any,
) -> Result:
    """Estimate the calibration error of many samples of a scenario.

    Parameters
    ----------
    n, bins : int or sequences of int
        Block sizes, and numbers of bins for the estimators that have them (one entry otherwise).
    estimator : str or callable
        A name of `calibrant.metrics.estimators.calibration_error`'s, or a function of (y_true, y_prob).
    edges : {"equal_width", "equal_mass"}, optional
        Equal width for binned estimators, equal mass for "sweep" and "debiased", where nothing is said.
    progress : bool or callable, default=True
        A bar with the time left on a terminal, for what takes longer than two seconds; or a function that is called
        with (scores drawn so far, scores in all).
    **options
        Handed to the estimator.
    """
    sizes, counts = _plan(scenario, n, repeats), _several(bins, "bins", count_from(1))
    estimate = _many(estimator, edges, norm, options)
    estimates = np.empty((len(counts), len(sizes), repeats))
    deviations = np.empty((len(sizes), repeats, 6))
    with reporting(progress, "simulating") as advance:
        for column, part, drawn in _draws(scenario, sizes, repeats, random_state, advance):
            deviations[column, part] = control_deviations(scenario, drawn)
            for row, values in enumerate(estimate(drawn, counts)):
                estimates[row, column, part] = values
    return Result(scenario, sizes, counts, scenario.true_error(norm), estimates, deviations)


def bias(scenario: Scenario, **settings: Any) -> Array:
    """Return the bias of an estimator, shape (bins, n); the settings are those of `run` (paper 003, Figure 4)."""
    return run(scenario, **settings).bias()


def variance(scenario: Scenario, **settings: Any) -> Array:
    """Return the variance of an estimator, shape (bins, n) (paper 003, Figures 12 to 14)."""
    return run(scenario, **settings).variance()


def absolute_error(scenario: Scenario, **settings: Any) -> Array:
    """Return the mean absolute error of an estimator, shape (bins, n) (paper 000, Figure 5)."""
    return run(scenario, **settings).absolute_error()


def sweep_bins(
    scenario: Scenario,
    *,
    n: int | Sequence[int] = (200,),
    edges: str = "equal_mass",
    repeats: int = 1000,
    random_state: int = 0,
    progress: Progress | bool = True,
) -> Integers:
    """Return the number of bins that the sweep chooses, shape (n, repeats) (paper 003, App. C)."""
    check_value("edges", edges, OneOf("equal_mass", "equal_width"))
    sizes = _plan(scenario, n, repeats)
    chosen = np.empty((len(sizes), repeats), dtype=np.int64)
    with reporting(progress, "simulating") as advance:
        for row, part, drawn in _draws(scenario, sizes, repeats, random_state, advance):
            chosen[row, part] = from_rows(drawn.scores, drawn.outcomes, drawn.complements).sweep(edges)[1]
    return chosen


@dataclass(frozen=True, eq=False)
class MissRates:
    """How often a miscalibration goes unnoticed: rates of shape (tce, n), and the critical values of shape (n,)."""

    tce: tuple[float, ...]
    n: tuple[int, ...]
    rates: Array
    critical: Array


def miss_rate(
    distribution: ScoreDistribution | None = None,
    *,
    tce: Sequence[float] = (0.02, 0.05, 0.1),
    n: int | Sequence[int] = (200, 1000),
    false_alarms: float = 0.05,
    norm: int = 2,
    repeats: int = 1000,
    random_state: int = 0,
    progress: Progress | bool = True,
    **settings: Any,
) -> MissRates:
    """Return the share of samples in which an estimator stays below its critical value (paper 003, §5.4, Figure 8).

    The critical value is the quantile of the estimator on calibrated samples that leaves ``false_alarms`` above it.
    Miscalibration is c^d with d chosen for each true error; scores are uniform unless a distribution is given.
    """
    law = Uniform() if distribution is None else distribution
    check_value("false_alarms", false_alarms, Number(0, 1))
    sizes, errors = _several(n, "n", ROWS), as_numbers(tce, "tce", 0, 1, ndim=1).tolist()
    common = {"n": sizes, "norm": norm, "repeats": repeats, **settings}
    with reporting(progress, "simulating") as advance:
        report = partial(_part, advance, len(errors) + 1)
        null = run(power_scenario(law, 0.0), random_state=random_state, progress=report(0), **common)
        critical = np.quantile(null.estimates[0], 1 - false_alarms, axis=1, method="higher")
        rates = np.empty((len(errors), len(sizes)))
        for row, error in enumerate(errors):
            scenario, seed = power_scenario(law, error, norm), random_state + row + 1
            found = run(scenario, random_state=seed, progress=report(row + 1), **common)
            rates[row] = (found.estimates[0] <= critical[:, None]).mean(axis=1)
    return MissRates(tuple(errors), sizes, rates, critical)


def _part(advance: Progress, steps: int, step: int) -> Progress:
    return lambda done, total: advance(step * total + done, steps * total)


def _plan(scenario: Any, n: Any, repeats: Any) -> tuple[int, ...]:
    """Return the sizes of samples, where these and the rest of what is to be drawn can be."""
    check_value("scenario", scenario, Instance((Scenario,), "a Scenario"))
    check_value("repeats", repeats, ROWS)
    return _several(n, "n", ROWS)


def _several(values: Any, name: str, constraint: Integer) -> tuple[int, ...]:
    """Return one or several positive whole numbers as a tuple."""
    several = np.atleast_1d(as_array(values, name)[0]).tolist()
    if not several or not all(constraint.accepts(value) for value in several):
        raise InvalidInput(f"{name} is not valid", seen=repr(values)[:80], allowed=constraint.allowed)
    return tuple(int(value) for value in several)


def _draws(
    scenario: Scenario, sizes: tuple[int, ...], repeats: int, random_state: int, advance: Progress
) -> Iterator[tuple[int, slice, Draw]]:
    total, done = repeats * sum(sizes), 0
    for column, size in enumerate(sizes):
        rng, rows = generator(random_state, size), max(1, BLOCK // size)
        for first in range(0, repeats, rows):
            part = slice(first, min(repeats, first + rows))
            yield column, part, scenario.draw(part.stop - first, size, rng)
            done += (part.stop - first) * size
            advance(done, total)


def _many(
    estimator: str | Callable[..., float], edges: str | None, norm: int | str, options: dict[str, Any]
) -> Callable[[Draw, tuple[Any, ...]], list[Array]]:
    """Return a function from many samples to one row of estimates a number of bins."""
    if not callable(estimator):
        check_estimator(estimator, norm)
        check_options(estimator, {**options, **({} if edges is None else {"edges": edges})})
    named = {"binned": "equal_width", "sweep": "equal_mass", "debiased": "equal_mass"}
    fast = isinstance(estimator, str) and estimator in named and not options
    if fast and is_one_of(edges, (None, "equal_width", "equal_mass")) and not (estimator == "debiased" and norm != 2):
        return _fast(str(estimator), edges or named[str(estimator)], norm)
    extra = {**options, **({} if edges is None else {"edges": edges})}

    def rows(drawn: Draw, counts: tuple[Any, ...]) -> list[Array]:
        return [_one_by_one(estimator, drawn, norm, count, extra) for count in counts]

    return rows


def _fast(name: str, edges: str, norm: int | str) -> Callable[[Draw, tuple[Any, ...]], list[Array]]:
    def rows(drawn: Draw, counts: tuple[Any, ...]) -> list[Array]:
        many = from_rows(drawn.scores, drawn.outcomes, drawn.complements)
        if name == "sweep":
            return [many.sweep(edges, norm)[0]] * len(counts)
        if name == "debiased":
            return [many.debiased(count, edges) for count in counts]
        return [many.binned(count, edges, norm) for count in counts]

    return rows


def _one_by_one(
    estimator: str | Callable[..., float], drawn: Draw, norm: int | str, count: Any, extra: dict[str, Any]
) -> Array:
    if callable(estimator):
        pairs = zip(drawn.outcomes.astype(np.int64), drawn.scores, strict=True)
        return numbers([estimator(y, s, **extra) for y, s in pairs], "what the estimator returns")
    compute, settings = ESTIMATORS[estimator], {"norm": norm, **extra}
    if estimator in ("binned", "label_binned", "debiased"):
        settings["bins"] = count
    rows = zip(drawn.scores, drawn.outcomes.astype(np.float64), strict=True)
    return np.array([compute(Pairs(s, y), **settings) for s, y in rows])
