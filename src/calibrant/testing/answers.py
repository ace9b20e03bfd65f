"""Checks of what a fitted map answers."""

from __future__ import annotations

import numpy as np

from ..arrays import best_column
from ..calibrator import Calibrator
from ..types import Floats
from .problems import Problem, distinct_rows, fitted, problem, require, sizes, worst_rows

_ROWS = {2: 120, 3: 150, 10: 200, 1000: 9}  # nine rows are too few to be held out, which keeps 1,000 classes quick


def _problems(calibrator: Calibrator) -> list[Problem]:
    return [problem(_ROWS[k], k) for k in sizes(calibrator, tuple(_ROWS))]


def require_distributions(p: Floats, shape: tuple[int, ...]) -> None:
    """Raise unless the rows lie on the simplex."""
    require(p.shape == shape, f"probabilities have the shape {p.shape}, not {shape}")
    require(
        np.isfinite(p).all(), f"probabilities are not finite, in rows {np.flatnonzero(~np.isfinite(p).all(axis=1))[:3]}"
    )
    require((p >= 0).all(), f"a probability is negative: {p.min()}")
    off = np.abs(p.sum(axis=1, dtype=np.float64) - 1).max()
    require(off <= (1e-5 if p.dtype == np.float32 else 1e-9), f"a row's sum is off by {off:.3g}")


def answers_distributions(calibrator: Calibrator) -> None:
    """Answer on the simplex, in the dtype asked in, for the worst scores and any number of classes."""
    for data in _problems(calibrator):
        worst = worst_rows(data.scores.shape[1])
        for dtype in (np.float32, np.float64):
            map_ = fitted(calibrator, data.scores.astype(dtype), data.labels)
            for rows in (worst.astype(dtype), data.other.astype(dtype)):
                p = map_.predict_proba(rows)
                require_distributions(p, rows.shape)
                require(p.dtype == dtype, f"{np.dtype(dtype)} scores gave {p.dtype} probabilities")


def fits_the_worst_scores(calibrator: Calibrator) -> None:
    """Fit on huge, tied, constant and impossible scores, and on tiny sets."""
    for k in sizes(calibrator, (2, 3, 10)):
        worst = worst_rows(k)
        for rows in (worst, np.tile(worst, (5, 1)), np.zeros((6, k)), worst[-2:]):
            labels = np.arange(len(rows)) % k
            for dtype in (np.float32, np.float64):
                map_ = fitted(calibrator, rows.astype(dtype), labels)
                require_distributions(map_.predict_proba(worst.astype(dtype)), worst.shape)


def fits_one_row(calibrator: Calibrator) -> None:
    """Fit and answer with a single row."""
    for k in sizes(calibrator, (2, 3, 10)):
        row = np.random.default_rng(k).normal(size=(1, k))
        require_distributions(fitted(calibrator, row, [0]).predict_proba(row), (1, k))


def fits_separable_scores(calibrator: Calibrator) -> None:
    """Stay finite when every label is the top class, and when none is."""
    for k in sizes(calibrator, (2, 3)):
        data = problem(90, k)
        for labels in (data.scores.argmax(axis=1), data.scores.argmin(axis=1)):
            require_distributions(fitted(calibrator, data.scores, labels).predict_proba(data.other), data.other.shape)


def keeps_what_it_promises(calibrator: Calibrator) -> None:
    """Keep the ranking or the top label of every row, as the traits say."""
    promise = calibrator.traits.preserves
    if promise == "nothing":
        return
    for data in _problems(calibrator):
        for dtype in (np.float32, np.float64):
            map_ = fitted(calibrator, data.scores.astype(dtype), data.labels)
            for rows in (data.other, worst_rows(data.other.shape[1]), distinct_rows(data.other.shape[1])):
                raw = rows.astype(dtype)
                require_promise(promise, raw, map_.predict_proba(raw))


def require_promise(promise: str, raw: Floats, p: Floats) -> None:
    """Raise unless probabilities keep what "ranking" or "top label" promises of the raw scores."""
    best = best_column(p, raw)
    rows = np.arange(len(raw))
    lost = np.flatnonzero(raw[rows, best] != raw.max(axis=1))
    require(len(lost) == 0, f"the top label changes in {len(lost)} of {len(raw)} rows, such as {lost[:3]}")
    if promise == "ranking":
        ordered = np.take_along_axis(p, np.argsort(raw, axis=1, kind="stable"), axis=1)
        broken = np.flatnonzero((np.diff(ordered, axis=1) < 0).any(axis=1))
        require(len(broken) == 0, f"the ranking breaks in {len(broken)} of {len(raw)} rows, such as {broken[:3]}")


def predicts_by_probability_then_score(calibrator: Calibrator) -> None:
    """Predict the most probable class, ties broken by the raw scores; a map with a rule of its own answers for it."""
    if calibrator._labels_of_its_own:
        return
    for data in _problems(calibrator)[:3]:
        map_ = fitted(calibrator, data.scores, data.labels)
        for rows in (data.other, worst_rows(data.other.shape[1])):
            p, answer = map_.predict_proba(rows), map_.predict(rows)
            chosen = p[np.arange(len(p)), answer]
            require((chosen >= p.max(axis=1) * (1 - 1e-6)).all(), "predict is not the most probable class")
            tied = np.where(p == p.max(axis=1, keepdims=True), rows, -np.inf)
            raw = rows[np.arange(len(p)), answer]
            require((raw >= tied.max(axis=1)).all(), "predict does not break ties by the raw scores")


def answers_rows_alone_as_among_others(calibrator: Calibrator) -> None:
    """Answer a row with the same bits alone, among few others and among many."""
    for data in (problem(150, k) for k in sizes(calibrator, (2, 3, 10, 40))):
        for dtype in (np.float32, np.float64):
            scores = data.scores.astype(dtype)
            confused = np.where(np.arange(len(data.labels)) % 3 > 0, data.labels, data.labels[::-1])
            require_same_rows(fitted(calibrator, scores, confused), np.concatenate([scores, data.other.astype(dtype)]))


def require_same_rows(map_: Calibrator, rows: Floats) -> None:
    """Raise unless a fitted map answers some rows as it does among all of them."""
    whole = map_.predict_proba(rows)
    for some in (*(slice(i, i + 1) for i in range(8)), slice(3, 10), slice(40, 101), slice(1, None)):
        off = np.abs(map_.predict_proba(rows[some]).astype(np.float64) - whole[some]).max()
        require(off == 0, f"rows {some.start} to {some.stop} by themselves differ from the same among all by {off:.3g}")


CHECKS = (
    answers_distributions,
    fits_the_worst_scores,
    fits_one_row,
    fits_separable_scores,
    keeps_what_it_promises,
    predicts_by_probability_then_score,
    answers_rows_alone_as_among_others,
)
