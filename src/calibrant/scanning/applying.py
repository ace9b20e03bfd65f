"""A fitted map on batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..passes.batch import Batch
from .reading import named, naming_rows

__all__ = ["answer"]


def answer(batch: Batch, maps: tuple[Any, ...]) -> Batch:
    """Return a batch with a map's probabilities in place of its scores; each next map gets those of the one before."""
    scores = named(batch)
    with naming_rows(batch.origin):
        for fitted in maps:
            if not len(batch.scores):
                return batch
            scores = fitted.predict_proba(scores)
    return replace(batch, scores=scores, columns=None)
