"""What a person should know of a file before believing any figure."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import softmax
from ..files import Dataset, Rows
from ..validation import as_scores


def facts(data: Dataset, rows: Rows) -> dict[str, Any]:
    """Return what a person should know of some rows before believing any figure."""
    scores = np.asarray(rows.scores)
    found: dict[str, Any] = {
        "rows": len(rows),
        "embeddings" if data.kind == "embeddings" else "scores": f"{scores.dtype} {scores.shape}, "
        f"{scores.min():.6g} to {scores.max():.6g}",
        "keys": dict(rows.keys or {}),
    }
    if data.kind == "embeddings":
        return found
    if rows.labels is not None and rows.labels.ndim == 2:
        found["labels"], found["outcomes_not_known"] = rows.labels.shape[1], int(np.isnan(rows.labels).sum())
        return found
    p = softmax(as_scores(rows.scores, data.kind).logits)
    said = p[:, 1] if scores.ndim == 1 else p
    found["exact_zeros"], found["exact_ones"] = int((said == 0).sum()), int((said == 1).sum())
    if scores.ndim == 1:
        found["distinct_scores"] = len(np.unique(scores))
    else:
        found["tied_rows"] = int(((p == p.max(axis=1, keepdims=True)).sum(axis=1) > 1).sum())
    found |= {key: len(np.unique(part)) for key in ("groups", "clusters") if (part := getattr(rows, key)) is not None}
    if rows.labels is not None:
        found["classes_seen"] = len(np.unique(rows.labels))
        if scores.ndim == 1:
            found |= {} if data.event is None else {"event": data.event}
            found["event_rate"] = float((rows.labels == data.classes[1]).mean())
            return found
        found["accuracy"] = float((data.classes[p.argmax(axis=1)] == rows.labels).mean())
    return found


def doubts(data: Dataset, *, by_group: bool = False) -> tuple[str, ...]:
    """Return what makes the figures doubtful, in words; ``by_group``: groups are parts to look at one by one."""
    found = []
    if data.test is None and len(data.parts) > 1:
        found.append(
            f"The file holds several sets ({', '.join(data.parts)}); this is about the first. Choose with --part."
        )
    if data.test is not None:
        found += [_shared(*(rows.clusters if by_group else rows.together for rows in (data.fit, data.test)))]
    for rows in data.parts.values():
        told = facts(data, rows)
        if rows.labels is not None and told.get("accuracy", 1.0) < 0.9 / len(data.classes):
            found.append(
                f"Accuracy is {told['accuracy']:.3f}, below chance: are the labels shifted or in another order?"
            )
    return tuple(words for words in found if words)


def _shared(one: Any, other: Any) -> str:
    if one is None or other is None or not (both := set(one.tolist()) & set(other.tolist())):
        return ""
    return f"{len(both)} groups have rows in both parts, so the test part is no independent judge."
