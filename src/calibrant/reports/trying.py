"""What the page needs to answer a score that its reader types: the map as JSON, and an example to begin with."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..calibrator import Calibrator
from ..errors import CalibrantError
from ..exports import evaluator, to_json

MOST_FIELDS = 20  # scores of a row that anyone would type
MOST_TEXT = 400_000  # characters of a map: a page of half a megabyte still opens at once


def trying(fitted: Calibrator | None, names: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the map as JSON, its evaluator, and a field for each score; None where no one would type its scores."""
    if fitted is None or fitted.traits.needs == "embeddings" or fitted.n_features_in_ > MOST_FIELDS:
        return None
    try:
        text = to_json(fitted, dtype="float64", golden=False)
    except CalibrantError:  # a map without a formula of plain operations
        return None
    if len(text) > MOST_TEXT:
        return None
    classes = [str(label) for label in fitted.classes_]
    told = [names[i] if i < len(names) else label for i, label in enumerate(classes)]
    fields = ["score"] if fitted.one_score_ else told
    return {
        "map": text.replace("<", "\\u003c"),
        "evaluator": evaluator(),
        "names": told,
        "fields": list(zip(fields, _example(len(fields), fitted.inputs), strict=True)),
        "inputs": fitted.inputs,
        "called": fitted.called,
    }


def _example(count: int, inputs: str) -> list[float]:
    """Return a row that is fairly sure of its first class, or one score that is."""
    if count == 1:
        return [0.8] if inputs == "probabilities" else [1.5]
    if inputs == "logits":
        return [2.0] + [0.0] * (count - 1)
    shares = np.floor(np.append(0.7, np.full(count - 1, 0.3 / (count - 1))) * 1000) / 1000
    shares[0] = round(1 - shares[1:].sum(), 3)
    return shares.tolist()
