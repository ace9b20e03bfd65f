"""Fit a map on each split and judge what it answers on the other rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from ..arrays import best_column
from ..calibrator import Calibrator
from ..fits.judge import label_losses, row_losses
from ..metrics.inference.resampling import Sampling
from ..metrics.metric import Metric
from ..metrics.table import TABLE
from ..metrics.views.forecasts import Forecasts, read
from ..parameters import AnyOf, Integer, OneOf, check_value
from ..threads import MOST, blas_threads, carried, get_threads, thread_limit
from ..types import Array, Floats, Integers
from ..validation.saturation import masked_out
from .problem import Problem, read_split
from .splits import Split

_RESAMPLES = 100
_GROUPS = 10


@dataclass(frozen=True, eq=False)
class Judgement:
    """What one map showed: per-row figures (means over repeats) and calibration errors with standard errors.

    ``parameters`` is the mean over its fits of how many numbers the rows determined, where the map knows that, else of
    how many it learnt; ``learnt`` is the mean of the latter.
    """

    rows: dict[str, Array]
    errors: dict[str, tuple[float, float]]
    fit_seconds: float
    predict_seconds: float
    messages: tuple[str, ...]
    parameters: float
    learnt: float


@dataclass(eq=False)
class Judged:
    """The answers on the judged rows of one repeat."""

    probabilities: Floats
    fit_seconds: list[float] = field(default_factory=list)
    predict_seconds: list[float] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    parameters: list[float] = field(default_factory=list)
    learnt: list[float] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Answers:
    """What a map answered on the judged rows, none of which it was fitted on."""

    probabilities: Floats
    labels: Integers
    weights: Array | None

    def take(self, rows: Integers) -> Answers:
        """Return those of the given rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Answers(self.probabilities[rows], self.labels[rows], weights)


def answers(
    build: Callable[[], Calibrator], fit_on: Problem, judge_on: Problem, splits: Sequence[Split], jobs: int | None
) -> Answers:
    """Fit a map on each split again, and return its answers on all judged rows."""
    judged = Judged(np.empty_like(judge_on.logits))
    with workers(jobs) as pool:
        list(pool.map(carried(lambda split: _one(build(), fit_on, judge_on, split, judged)), splits))
    return Answers(judged.probabilities, judge_on.labels, judge_on.weights)


@contextmanager
def workers(count: int | None) -> Iterator[ThreadPoolExecutor]:
    """A pool for folds; what the compiled core and BLAS may use is divided among its threads, for what is `carried`."""
    check_value("n_jobs", count, AnyOf(OneOf(None, -1), Integer(1, MOST)))
    threads = get_threads()
    used = threads if count in (None, -1) else count
    share = max(1, threads // used)
    with blas_threads(share), thread_limit(share), ThreadPoolExecutor(used) as pool:
        yield pool


def evaluate(
    build: Callable[[], Calibrator],
    fit_on: Problem,
    judge_on: Problem,
    repeats: Sequence[Sequence[Split]],
    pool: ThreadPoolExecutor,
    done: Callable[[], None],
    also: Sequence[str] = (),
) -> Judgement:
    """Judge one map: every repeat's splits run in parallel, and only one repeat's answers are in memory.

    ``also`` names further calibration errors of the table of metrics.
    """
    rows: dict[str, Array] = {}
    errors: list[dict[str, tuple[float, float]]] = []
    seconds: list[Judged] = []
    for splits in repeats:
        judged = Judged(np.empty_like(judge_on.logits))
        for _ in pool.map(carried(lambda split: _one(build(), fit_on, judge_on, split, judged)), splits):  # noqa: B023
            done()
        for name, values in _row_figures(judged.probabilities, judge_on).items():
            rows[name] = rows.get(name, np.zeros(judge_on.n)) + values / len(repeats)
        errors.append(_errors(judged.probabilities, judge_on, also))
        judged.probabilities = judged.probabilities[:0]
        seconds.append(judged)
    return Judgement(
        rows,
        {name: _mean_pair([e[name] for e in errors]) for name in errors[0]},
        float(np.mean([s for j in seconds for s in j.fit_seconds])),
        float(sum(s for j in seconds for s in j.predict_seconds) / len(seconds)),
        tuple(dict.fromkeys(m for j in seconds for m in j.messages)),
        float(np.mean([count for j in seconds for count in j.parameters])),
        float(np.mean([count for j in seconds for count in j.learnt])),
    )


def _one(calibrator: Calibrator, fit_on: Problem, judge_on: Problem, split: Split, judged: Judged) -> None:
    data, inputs = read_split(calibrator, fit_on, split.fit, judge_on, split.judge)
    begun = time.perf_counter()
    report = calibrator.fit_data(data)
    fitted = time.perf_counter()
    judged.probabilities[split.judge] = _answer(calibrator, inputs, fit_on.exact)
    judged.predict_seconds.append(time.perf_counter() - fitted)
    judged.fit_seconds.append(fitted - begun)
    judged.messages.extend(report.messages)
    judged.learnt.append(calibrator.n_parameters_)
    judged.parameters.append(float(report.details.get("effective_parameters", calibrator.n_parameters_)))
    if not report.converged:
        judged.messages.append("did not converge")


def _answer(calibrator: Calibrator, inputs: Floats, exact: bool) -> Floats:
    """What `predict_proba` answers."""
    answer = calibrator._map(inputs)
    return masked_out(answer, inputs) if exact and np.isneginf(inputs).any() else answer


def _row_figures(p: Floats, problem: Problem) -> dict[str, Array]:
    labels = problem.labels
    if problem.is_event:
        return {"nll": label_losses(p, labels), "brier": (p[:, 1].astype(np.float64) - labels) ** 2}
    right = best_column(p, problem.logits) == labels
    return {"nll": label_losses(p, labels), "brier": row_losses("brier", p, labels), "accuracy": right.astype(float)}


def _errors(p: Floats, problem: Problem, also: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Calibration errors, with standard errors: resampled rows for the event or top label, else a jackknife.

    Where rows have groups, groups are resampled and left out.
    """
    units = np.arange(problem.n) if problem.groups is None else problem.groups
    forecasts = read(problem.labels, p[:, 1] if problem.is_event else p, problem.weights, marginals=True)
    found = {name: _resampled(TABLE[name], forecasts, units) for name in ("ece", "ece_sweep")}
    for name in (*(() if problem.is_event else ("cwece",)), *also):
        if name not in found:
            found[name] = _jackknife(TABLE[name], forecasts, units)
    return found


def _resampled(metric: Metric, forecasts: Forecasts, units: Integers) -> tuple[float, float]:
    drawn = Sampling(0, np.random.default_rng(0), _RESAMPLES).forecasts(replace(forecasts, clusters=units))
    values = [metric.of(part) for part in drawn if part.weights is None or part.weights.any()]
    return metric.of(forecasts), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _jackknife(metric: Metric, forecasts: Forecasts, units: Integers) -> tuple[float, float]:
    value = metric.of(forecasts)
    n = int(units.max()) + 1
    parts = min(_GROUPS, n)
    if parts < 2:
        return value, 0.0
    part = (np.random.default_rng(0).permutation(n) % parts)[units]
    left = [metric.of(forecasts.take(part != g)) for g in range(parts)]
    return value, float(np.sqrt((parts - 1) * np.var(left)))


def _mean_pair(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    values = np.array(pairs)
    return float(values[:, 0].mean()), float(values[:, 1].mean())
