"""Maps side by side on rows they were not fitted on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibrator import Calibrator
from ..errors import CalibrantError, InvalidInput
from ..registry import entries, make, make_seeded, names
from .choice import choose, explain
from .complexity import parameter_count
from .evaluate import ROW_METRICS, Answers, Judgement, answers, evaluate, workers
from .problem import Problem, Split, folds, make_problem, subsample
from .result import Comparison, Curve, Estimate, Row

__all__ = ["FAST", "compare", "compare_problems", "pick_methods"]

# Every kind of map, each at a small cost at K = 1,000.
FAST = ("identity", "ts", "ets", "bts", "irm", "irova-ts", "imax", "platt-s", "beta-s", "vector")
Progress = Callable[[int, int], None]


def compare(
    scores: Any,
    y: Any,
    *,
    methods: str | Sequence[str] = "fast",
    cv: int = 5,
    repeats: int = 1,
    test: Sequence[Any] | None = None,
    inputs: str = "logits",
    classes: Any = None,
    sample_weight: Any = None,
    embeddings: Any = None,
    metric: str = "nll",
    preserve_accuracy: bool = False,
    sizes: Sequence[int] = (),
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Judge maps on rows they were not fitted on, and choose the simplest good one.

    Parameters
    ----------
    scores, y, sample_weight, inputs, classes
        As for `Calibrator.fit`.
    methods : {"fast", "all"} or sequence of str
        Registered names, or chains such as ``"ts > irova"``. The identity always takes part. "all" leaves out maps on
        embeddings where none are given.
    cv, repeats : int
        Stratified folds, dealt anew in each repeat.
    test : tuple (scores, y) or (scores, y, embeddings), optional
        Judge on these rows instead, after a fit on all the others.
    embeddings : array-like of shape (n, d), optional
        For maps that need them.
    metric : {"nll", "brier"}
        What decides.
    preserve_accuracy : bool
        Choose only among maps that never change a predicted label.
    sizes : sequence of int
        Rows to fit on for a learning curve (Mix-n-Match, Figure 6).
    random_state : int
    n_jobs : int, optional
        Folds at a time; by default the threads that calibrant may use. The result does not depend on it.
    progress : callable, optional
        Called with (fits done, fits in all).

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(400, 3)); y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> compare(3 * z, y, methods=["ts"]).best_
    'ts'
    """
    given = make_problem(scores, y, inputs, classes, sample_weight, embeddings)
    judged = given
    if test is not None:
        judged = _test_problem(test, inputs, given)
    result = compare_problems(
        given,
        judged if test is not None else None,
        methods=methods,
        cv=cv,
        repeats=repeats,
        metric=metric,
        preserve_accuracy=preserve_accuracy,
        sizes=sizes,
        random_state=random_state,
        n_jobs=n_jobs,
        progress=progress,
    )

    def refit() -> Calibrator:
        calibrator = make_seeded(result.best_, random_state).set_params(inputs=inputs, classes=classes)
        rows = embeddings if calibrator.traits.needs == "embeddings" else scores
        return calibrator.fit(rows, y, sample_weight=sample_weight)

    return replace(result, _refit=refit, settings={**result.settings, "inputs": inputs})


def compare_problems(
    given: Problem,
    test: Problem | None,
    *,
    methods: str | Sequence[str],
    cv: int,
    repeats: int,
    metric: str,
    preserve_accuracy: bool,
    sizes: Sequence[int],
    random_state: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> Comparison:
    """`compare` on validated rows; its ``refit_`` is filled in by the caller."""
    if metric not in ("nll", "brier"):
        raise InvalidInput("metric must be one that decides by rows", seen=repr(metric), allowed="'nll' or 'brier'")
    picked = pick_methods(methods, given.embeddings is not None)
    plan = _plan(given, test, cv, 1 if test is not None else repeats, random_state)
    smaller = _smaller_plans(plan, given, sizes, random_state)
    judged = test or given
    steps = _Steps(progress, len(picked) * sum(len(splits) for p in (plan, *smaller.values()) for splits in p))
    found: dict[str, Judgement | str] = {}
    curves: list[Curve] = []
    with workers(n_jobs) as pool:
        for name in picked:
            try:
                found[name] = evaluate(lambda: make_seeded(name, random_state), given, judged, plan, pool, steps)  # noqa: B023
                points = [
                    evaluate(lambda: make_seeded(name, random_state), given, judged, p, pool, steps)  # noqa: B023
                    for p in smaller.values()
                ]
            except Exception as error:  # a map that fails is a row of the table
                found[name] = str(error) if isinstance(error, CalibrantError) else f"{type(error).__name__}: {error}"
                continue
            if points:
                figures = tuple(_estimates(j, judged)[metric] for j in points)
                curves.append(Curve(name, metric, tuple(smaller), figures))
    rows = _rows(found, given, judged, metric, preserve_accuracy)
    chosen, lowest = choose(rows, metric)
    reason = explain(rows, chosen, lowest, metric, given.n, given.k, curves)
    settings = {
        "rows": given.n,
        "classes": given.k,
        "judged_rows": judged.n,
        "judged_on": "test set" if test is not None else f"{cv} folds × {repeats}",
        "metric": metric,
        "preserve_accuracy": preserve_accuracy,
        "random_state": random_state,
    }

    def again(name: str) -> Answers:
        return answers(lambda: make_seeded(name, random_state), given, judged, plan[0], n_jobs)

    def unfitted() -> Calibrator:
        return make_seeded(chosen.name, random_state)

    return Comparison(rows, chosen.name, lowest.name, reason, tuple(curves), settings, unfitted, again)


def pick_methods(methods: str | Sequence[str], embeddings: bool) -> list[str]:
    """Return the names to compare, the identity first; unknown ones are refused."""
    known = names()
    if isinstance(methods, str) and methods == "all":
        picked = [e.name for e in entries() if embeddings or e.traits.needs != "embeddings"]
    elif isinstance(methods, str) and methods == "fast":
        picked = [name for name in FAST if name in known]
    else:
        picked = [methods] if isinstance(methods, str) else list(methods)
        for name in picked:
            make(name)
    return list(dict.fromkeys(["identity", *picked]))


class _Steps:
    """Counts fits and tells `progress`."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.count = progress, total, 0

    def __call__(self) -> None:
        self.count += 1
        if self.progress is not None:
            self.progress(self.count, self.total)


def _test_problem(test: Sequence[Any], inputs: str, given: Problem) -> Problem:
    if not isinstance(test, (tuple, list)) or len(test) not in (2, 3):
        raise InvalidInput("test must be (scores, y) or (scores, y, embeddings)", seen=type(test).__name__)
    embeddings = test[2] if len(test) == 3 else None
    return make_problem(test[0], test[1], inputs, given.classes, None, embeddings, "test ")


def _plan(given: Problem, test: Problem | None, cv: int, repeats: int, seed: int) -> list[list[Split]]:
    if test is not None:
        return [[Split(np.arange(given.n), np.arange(test.n))]]
    if not isinstance(cv, int) or isinstance(cv, bool) or cv < 2 or repeats < 1:
        raise InvalidInput("cv must be at least 2 and repeats at least 1", seen=f"cv={cv!r}, repeats={repeats!r}")
    if given.n < 2 * cv:
        raise InvalidInput(f"{given.n} rows are too few for {cv} folds", hint="pass a smaller cv, or a test set")
    return [folds(given.sample.labels, cv, np.random.default_rng([seed, r])) for r in range(repeats)]


def _smaller_plans(
    plan: list[list[Split]], given: Problem, sizes: Sequence[int], seed: int
) -> dict[int, list[list[Split]]]:
    labels, plans = given.sample.labels, {}
    for size in sorted({int(s) for s in sizes}):
        if size < 2:
            raise InvalidInput("sizes must be at least 2", seen=str(size))
        rng = np.random.default_rng([seed, size])
        plans[size] = [[Split(subsample(s.fit, labels, size, rng), s.judge) for s in splits] for splits in plan]
    return plans


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Estimate:
    total = weights.sum()
    mean = float(weights @ values / total)
    if not np.isfinite(mean):
        return Estimate(mean, float("inf"))
    return Estimate(mean, float(np.sqrt(weights**2 @ (values - mean) ** 2) / total))


def _estimates(judgement: Judgement, judged: Problem) -> dict[str, Estimate]:
    weights = judged.sample.weight_array
    found = {name: _mean(judgement.rows[name], weights) for name in ROW_METRICS}
    return found | {name: Estimate(*pair) for name, pair in judgement.errors.items()}


def _differences(one: Judgement, other: Judgement, judged: Problem) -> dict[str, Estimate]:
    weights = judged.sample.weight_array
    with np.errstate(invalid="ignore"):
        pairs = {name: one.rows[name] - other.rows[name] for name in ROW_METRICS}
    return {name: _mean(np.where(np.isnan(d), 0.0, d), weights) for name, d in pairs.items()}


def _rows(
    found: dict[str, Judgement | str], given: Problem, judged: Problem, metric: str, preserve_accuracy: bool
) -> tuple[Row, ...]:
    good = {name: j for name, j in found.items() if isinstance(j, Judgement)}
    traits = {name: make(name).traits for name in found}
    eligible = {name: traits[name].preserves_accuracy or not preserve_accuracy for name in found}
    if "identity" not in good:
        raise InvalidInput("the scores cannot be judged", seen=str(found["identity"]))
    figures = {name: _estimates(j, judged) for name, j in good.items()}
    best = min((name for name in good if eligible[name]), key=lambda name: figures[name][metric].value)
    rows = [
        Row(
            name,
            figures[name],
            _differences(j, good["identity"], judged),
            _differences(j, good[best], judged),
            parameter_count(traits[name].parameters, given.k, given.n),
            traits[name].preserves,
            j.fit_seconds,
            j.predict_seconds,
            eligible[name],
            j.messages,
        )
        for name, j in good.items()
    ]
    rows.sort(key=lambda row: row.metrics[metric].value)
    failed = [Row(name, keeps=traits[name].preserves, error=j) for name, j in found.items() if isinstance(j, str)]
    return (*rows, *failed)
