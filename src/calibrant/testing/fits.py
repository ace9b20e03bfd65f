"""Checks of what a fit may and may not depend on."""

from __future__ import annotations

import numpy as np

from ..calibrator import Calibrator
from ..passes import Block, in_memory
from .problems import fit_quietly, fitted, problem, require, require_close, samples, sizes, threads


def row_order_does_not_matter(calibrator: Calibrator) -> None:
    """Give the same map for the same rows in another order."""
    for data in samples(calibrator):
        order = np.random.default_rng(3).permutation(len(data.labels))
        p = fitted(calibrator, data.scores, data.labels).predict_proba(data.other)
        q = fitted(calibrator, data.scores[order], data.labels[order]).predict_proba(data.other)
        require_close(p, q, 1e-5, "rows in another order")


def weight_two_is_the_row_twice(calibrator: Calibrator) -> None:
    """Count a row of weight two as two rows."""
    for data in samples(calibrator):
        weights = np.ones(len(data.labels))
        weights[::3] = 2.0
        twice = np.repeat(np.arange(len(weights)), weights.astype(int))
        p = fitted(calibrator, data.scores, data.labels, weights).predict_proba(data.other)
        q = fitted(calibrator, data.scores[twice], data.labels[twice]).predict_proba(data.other)
        require_close(p, q, 1e-4, "weight 2 against the row twice")


def weight_zero_is_the_row_absent(calibrator: Calibrator) -> None:
    """Ignore rows of weight zero, through the public door and below it."""
    for data in samples(calibrator):
        weights = np.random.default_rng(5).uniform(0.5, 1.5, len(data.labels))
        weights[::4] = 0.0
        kept = np.flatnonzero(weights)
        p = fitted(calibrator, data.scores, data.labels, weights).predict_proba(data.other)
        q = fitted(calibrator, data.scores[kept], data.labels[kept], weights[kept]).predict_proba(data.other)
        require_close(p, q, 1e-6, "weight 0 against the row absent")


def weights_matter(calibrator: Calibrator) -> None:
    """Follow the weights: leaving a class nearly without weight changes a map that learns anything."""
    data = samples(calibrator)[0]
    if calibrator.traits.parameters == "0":
        return
    weights = np.where(data.scores.argmax(axis=1) == data.labels, 1.0, 0.05)
    p = fitted(calibrator, data.scores, data.labels).predict_proba(data.other)
    q = fitted(calibrator, data.scores, data.labels, weights).predict_proba(data.other)
    require(np.abs(p - q).max() > 1e-3, "sample_weight makes no difference")


def shift_of_logits_does_not_matter(calibrator: Calibrator) -> None:
    """Give the same map for logits and for the log-probabilities of the same model."""
    for data in samples(calibrator):
        shift = np.random.default_rng(9).normal(size=(len(data.labels), 1)) * 20
        p = fitted(calibrator, data.scores, data.labels).predict_proba(data.other)
        q = fitted(calibrator, data.scores + shift, data.labels).predict_proba(data.other + shift)
        require_close(p, q, 1e-5, "every row shifted by a constant")


def probabilities_agree_with_logits(calibrator: Calibrator) -> None:
    """Give the same map for probabilities announced as such and for their logits."""
    for data in samples(calibrator):
        raw, other = (np.exp(z - z.max(axis=1, keepdims=True)) for z in (data.scores, data.other))
        raw, other = raw / raw.sum(axis=1, keepdims=True), other / other.sum(axis=1, keepdims=True)
        p = fitted(calibrator, data.scores, data.labels).predict_proba(data.other)
        q = fitted(calibrator, raw, data.labels, inputs="probabilities").predict_proba(other)
        require_close(p, q, 1e-5, "probabilities against logits")


def threads_do_not_matter(calibrator: Calibrator) -> None:
    """Give the same bits on one thread and on two."""
    k = sizes(calibrator, (2, 20))[-1]
    data = problem(140_000 // k, k)  # two blocks of the compiled core and a bit
    rows = slice(290 if calibrator.traits.shape == "kernel" else None)  # of pairs, two blocks as well
    sample = Block(data.scores[rows], data.labels[rows], None, k)
    answers = []
    for count in (1, 2):
        with threads(count):
            map_ = calibrator.unfitted()
            map_.fit_data(in_memory(sample))
            answers.append(map_._map(data.other).tobytes())
    require(answers[0] == answers[1], "one thread and two give different bits")


def same_seed_same_bytes(calibrator: Calibrator) -> None:
    """Give the same bytes twice, and when a map is fitted again after other data."""
    first, *_, last = [*samples(calibrator), problem(60, 2, seed=11)]
    seed = {"random_state": 3} if "random_state" in calibrator.get_params(deep=False) else {}
    map_ = fitted(calibrator, first.scores, first.labels, **seed)
    wanted = map_.predict_proba(first.other).tobytes()
    again = fitted(calibrator, first.scores, first.labels, **seed)
    require(wanted == again.predict_proba(first.other).tobytes(), "two fits on the same data differ")
    used = fitted(calibrator, last.scores, last.labels, **seed)
    refitted = fit_quietly(used, first.scores, first.labels)
    require(wanted == refitted.predict_proba(first.other).tobytes(), "a map fitted before remembers its old data")


def float32_agrees_with_float64(calibrator: Calibrator) -> None:
    """Fit the same map in both precisions."""
    for data in samples(calibrator):
        p = fitted(calibrator, data.scores, data.labels).predict_proba(data.other)
        single = data.as_type(np.float32)
        q = fitted(calibrator, single.scores, single.labels).predict_proba(single.other)
        require_close(p, q, 2e-3, "float32 against float64")


OF_ALL = (  # of maps on embeddings too
    row_order_does_not_matter,
    weight_two_is_the_row_twice,
    weight_zero_is_the_row_absent,
    weights_matter,
    same_seed_same_bytes,
    float32_agrees_with_float64,
)
CHECKS = (*OF_ALL, shift_of_logits_does_not_matter, probabilities_agree_with_logits, threads_do_not_matter)
