"""Maps side by side on rows they were not fitted on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np

from ..calibrator import Calibrator
from ..errors import CalibrantError, InvalidInput
from ..metrics.metric import Error
from ..metrics.table import TABLE
from ..parameters import OneOf, check_value, is_one_of
from ..scanning import Scan, refuse_beside_a_scan
from ..threads import carried
from ..traits import Preserves
from ..validation import ordered_like
from .choice import choose, explain
from .evaluate import Answers, Judgement, answers, evaluate, workers
from .methods import Methods, left_out, pick_methods
from .problem import Problem, make_problem, scan_problem
from .result import Comparison, Curve
from .splits import make_plan, smaller_plans
from .table import estimates, make_rows

Progress = Callable[[int, int], None]


def compare(
    scores: Any,
    y: Any = None,
    *,
    methods: Methods = "default",
    cv: int = 5,
    repeats: int = 1,
    test: Any = None,
    inputs: str | None = None,
    classes: Any = None,
    saturated: str = "small",
    sample_weight: Any = None,
    embeddings: Any = None,
    groups: Any = None,
    metric: str = "nll",
    also: str | Sequence[str] = (),
    preserve_accuracy: bool = False,
    preserve: str | None = None,
    sizes: Sequence[int] = (),
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Judge maps on rows they were not fitted on, and choose one.

    Parameters
    ----------
    scores, y, sample_weight, inputs, classes, saturated
        As for `Calibrator` and its `fit`: ``inputs`` are logits where nothing else is said. Scores may be a
        `calibrant.scan` alone. What does not fit in memory is compared on a sample of rows, chosen by a hash of their
        content; ``settings["judged_on"]`` and ``reason`` say so, and ``refit_`` is fitted on all rows, by passes.
    methods : {"default", "fast", "all"} or sequence of str or Calibrator
        Registered names, chains such as ``"ts > irova"``, or maps with settings of their own (copies of them are
        fitted; their rows are called by what they print as). The identity always takes part. "default" are the maps
        that win on real sets, as far as the rows and classes allow it in seconds; "fast" are those of them that take
        milliseconds. "all" leaves out maps on embeddings where none are given, and says so in
        ``settings["left_out"]``.
    cv, repeats : int
        Stratified folds, dealt anew in each repeat.
    test : tuple (scores, y), with embeddings, groups and weights behind, optional
        Judge on these rows instead, after a fit on all the others; what is left out at the end is None.
    embeddings : array-like of shape (n, d), optional
        For maps that need them.
    groups : array-like of shape (n,), optional
        Rows of one group (a patient, a document) stay in one fold, and count as one for the standard errors.
    metric : {"nll", "brier"}
        What decides.
    also : str or sequence of str
        Further figures to show: "gain", the calibration gain ΔECE² against the scores as they came (larger is better:
        paper 000 ranks maps by it), and any calibration error of the table of metrics, such as "ece_kde" (which it
        quotes) or "ece_crossfit". They decide nothing.
    preserve_accuracy : bool
        Choose only among maps that never change a predicted label.
    preserve : {"top label", "ranking"}, optional
        The same, or only among maps that keep the order of every row's classes.
    sizes : sequence of int
        Rows to fit on for a learning curve (Mix-n-Match, Figure 6).
    random_state : int
    n_jobs : int, optional
        Folds at a time; by default, and with -1, the threads that calibrant may use. The result does not depend on it.
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
    check_value("inputs", inputs, OneOf(None, "logits", "probabilities"))
    check_value("saturated", saturated, OneOf("small", "exact"))
    exact = saturated == "exact"
    scan = scores if isinstance(scores, Scan) else None
    if scan is not None:
        _refuse_beside(y, sample_weight, embeddings, groups if groups is not None else scan.grouped or None)
        inputs = scan.kind_of(inputs)
    inputs = inputs or "logits"
    given, sampled = (None, "") if scan is None else scan_problem(scan, inputs, classes, exact=exact)
    given = given or make_problem(scores, y, inputs, classes, sample_weight, embeddings, groups, exact=exact)
    if given.n > 1 and (given.labels == given.labels[0]).all():
        raise InvalidInput(
            "y holds one class only: maps can be compared on rows of at least two classes",
            seen=f"every label is {given.classes[given.labels[0]].item()!r}",
        )
    found = compare_problems(
        given,
        None if test is None else _test_problem(test, inputs, given, scores),
        methods=methods,
        cv=cv,
        repeats=repeats,
        metric=metric,
        also=also,
        preserve_accuracy=preserve_accuracy,
        preserve=preserve,
        sizes=sizes,
        random_state=random_state,
        n_jobs=n_jobs,
        progress=progress,
    )
    result = _stated(found, sampled)

    def refit() -> Calibrator:
        calibrator = found.refit_.unfitted()
        if calibrator.traits.needs == "embeddings":
            calibrator.set_params(classes=given.classes)
            return calibrator.fit(embeddings, y, sample_weight=sample_weight)
        more = {"saturated": saturated} if exact else {}
        calibrator.set_params(inputs=inputs, classes=classes, **more)
        return calibrator.fit(scores) if scan is not None else calibrator.fit(scores, y, sample_weight=sample_weight)

    return replace(result, _refit=refit, settings={**result.settings, "inputs": inputs})


def compare_problems(
    given: Problem,
    test: Problem | None,
    *,
    methods: Methods,
    cv: int,
    repeats: int,
    metric: str,
    preserve_accuracy: bool,
    preserve: str | None,
    random_state: int,
    sizes: Sequence[int] = (),
    n_jobs: int | None = None,
    progress: Progress | None = None,
    also: str | Sequence[str] = (),
) -> Comparison:
    """`compare` on validated rows; its ``refit_`` is filled in by the caller."""
    if not is_one_of(metric, ("nll", "brier")):
        raise InvalidInput("metric must be one that decides by rows", seen=repr(metric), allowed="'nll' or 'brier'")
    more = _further(also)
    kept = _kept(preserve_accuracy, preserve)
    order = (test or given).content_order()
    given, test = given.take(given.content_order()), None if test is None else test.take(order)
    picked = pick_methods(methods, given.n, given.k, given.embeddings is not None, random_state)
    plan = make_plan(given, test, cv, repeats, random_state)
    smaller = smaller_plans(plan, given, sizes, random_state)
    judged = test or given
    steps = _Steps(progress, len(picked) * sum(len(splits) for p in (plan, *smaller.values()) for splits in p))

    def judge(name: str) -> tuple[Judgement | str, Curve | None]:
        build = picked[name].unfitted
        try:
            found = evaluate(build, given, judged, plan, pool, steps, [name for name in more if name != "gain"])
            points = [evaluate(build, given, judged, p, pool, steps) for p in smaller.values()]
        except Exception as error:  # a map that fails is a row of the table
            return _words(error), None
        figures = tuple(estimates(point, judged)[metric] for point in points)
        return found, Curve(name, metric, tuple(smaller), figures) if figures else None

    # Two maps are under way at a time, so that the folds of one keep the workers busy while the other is judged.
    with workers(n_jobs) as pool, ThreadPoolExecutor(2) as ahead:
        judgements = dict(zip(picked, ahead.map(carried(judge), picked), strict=True))
    curves = [curve for _, curve in judgements.values() if curve is not None]
    traits = {name: map_.traits for name, map_ in picked.items()}
    rows = make_rows({name: j for name, (j, _) in judgements.items()}, traits, judged, metric, kept, "gain" in more)
    chosen, lowest = choose(rows, metric, judged.n)
    reason = explain(rows, chosen, lowest, metric, given.n, given.k, curves)
    settings = {
        **_facts(given, judged),
        "judged_on": "test set" if test is not None else f"{cv} folds" + (f" × {repeats}" if repeats > 1 else ""),
        "metric": metric,
        "also": more,
        "preserve_accuracy": preserve_accuracy,
        "preserve": kept,
        "random_state": random_state,
        "left_out": left_out(methods, given.embeddings is not None),
    }

    def again(name: str) -> Answers:
        return answers(picked[name].unfitted, given, judged, plan[0], n_jobs).take(np.argsort(order))

    return Comparison(
        rows, chosen.name, lowest.name, reason, tuple(curves), settings, picked[chosen.name].unfitted, again
    )


def _further(names: str | Sequence[str]) -> list[str]:
    """Return what a comparison shows besides its own figures, each once."""
    errors = [name for name, metric in TABLE.items() if isinstance(metric, Error) and name != "calibration_error"]
    if not isinstance(names, (str, list, tuple)):
        raise InvalidInput("also names figures", seen=type(names).__name__, allowed="a word, or a list of words")
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if not is_one_of(name, ("gain", *errors)):
            raise InvalidInput("also asks for an unknown figure", seen=repr(name), allowed=f"gain, {', '.join(errors)}")
    return list(dict.fromkeys(wanted))


def _kept(preserve_accuracy: bool, preserve: str | None) -> Preserves:
    """Return what the chosen map must keep."""
    if not is_one_of(preserve, (None, "top label", "ranking")):
        raise InvalidInput("preserve is not valid", seen=repr(preserve), allowed="None, 'top label' or 'ranking'")
    if preserve == "ranking":
        return "ranking"
    check_value("preserve_accuracy", preserve_accuracy, OneOf(True, False))
    return "top label" if preserve_accuracy or preserve == "top label" else "nothing"


def _words(error: Exception) -> str:
    words = str(error) if isinstance(error, CalibrantError) else f"{type(error).__name__}: {error}"
    return words.partition("\n")[0]


def _facts(given: Problem, judged: Problem) -> dict[str, Any]:
    groups = None if judged.groups is None else int(judged.groups.max()) + 1
    zeros = 0 if judged.exact else int(np.isneginf(judged.logits).any(axis=1).sum())
    return {
        "rows": given.n,
        "classes": given.k,
        "event": given.is_event,
        "judged_rows": judged.n,
        "zeros": zeros,
        "groups": groups,
    }


class _Steps:
    """Counts fits and tells `progress`; several threads may call it."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.count, self.lock = progress, total, 0, Lock()

    def __call__(self) -> None:
        with self.lock:
            self.count += 1
            if self.progress is not None:
                self.progress(self.count, self.total)


def _refuse_beside(y: Any, sample_weight: Any, embeddings: Any, groups: Any) -> None:
    refuse_beside_a_scan(y, sample_weight)
    if embeddings is not None or groups is not None:
        name = "embeddings" if embeddings is not None else "groups"
        raise InvalidInput(f"compare on a scan takes no {name}", hint="pass arrays that fit in memory")


def _stated(result: Comparison, sampled: str) -> Comparison:
    """Say on which sample maps were compared, where it was one."""
    if not sampled:
        return result
    judged = result.settings["judged_on"]
    words = f"{judged}, after fits on {sampled}" if judged == "test set" else f"{judged} of {sampled}"
    settings = {**result.settings, "judged_on": words, "sample": sampled}
    return replace(result, settings=settings, reason=f"{result.reason} All this is said by {sampled}.")


def _test_problem(test: Any, inputs: str, given: Problem, fitted_on: Any) -> Problem:
    """The rows to judge on; the names of their columns decide which is which class."""
    if isinstance(test, Scan):
        return scan_problem(test, inputs, given.classes, exact=given.exact)[0]
    if not isinstance(test, (tuple, list)) or len(test) not in (2, 3, 4, 5):
        raise InvalidInput(
            "test must be (scores, y), with embeddings, groups and weights behind", seen=type(test).__name__
        )
    scores, y, embeddings, groups, weights = (*test, None, None, None)[:5]
    scores = ordered_like(scores, fitted_on, given.classes)
    return make_problem(scores, y, inputs, given.classes, weights, embeddings, groups, name="test ", exact=given.exact)
