"""What a comparison computes from a data set, and what its report says of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from ..files import Dataset, read
from ..reports import Context
from ..selection import Comparison, compare
from .facts import doubts, facts

__all__ = ["compared", "report_context"]


def compared(data: Dataset, seed: int, progress: Any, settings: dict[str, Any], names: dict[str, Any]) -> Comparison:
    """Compare maps: on the test part or file where there is one and no number of folds was asked for."""
    data.need_scores("comparing")
    rows, wanted = data.fit, settings["methods"]
    other = read(settings["test"], **names) if settings["test"] else data
    test = other.judged if settings["test"] else data.test
    if other.kind != data.kind:
        raise InvalidInput(f"{data.path} holds {data.kind}, {other.path} holds {other.kind}")
    use_test = test is not None and (settings["cv"] is None or settings["test"] is not None)
    return compare(
        rows.scores,
        data.labels(rows),
        methods=wanted if wanted in ("fast", "all") else [name.strip() for name in wanted.split(",")],
        cv=settings["cv"] or 5,
        repeats=settings["repeats"],
        test=(test.scores, other.labels(test), test.embeddings, test.groups) if use_test and test is not None else None,
        inputs=data.kind,
        classes=None if data.plain_classes else data.classes,
        sample_weight=rows.weights,
        embeddings=rows.embeddings,
        groups=rows.groups,
        metric=settings["metric"],
        preserve_accuracy=settings["preserve_accuracy"],
        sizes=settings["sizes"],
        random_state=seed,
        progress=progress,
    )


def report_context(data: Dataset, title: str | None, settings: dict[str, Any], seed: int) -> Context:
    """Return where the numbers of a report come from."""
    found: dict[str, Any] = {"file": data.path, "SHA-256": data.digest, "scores": data.kind}
    of_parts = {name: facts(data, rows) for name, rows in data.parts.items()}
    for key in dict.fromkeys(key for told in of_parts.values() for key in told if key != "keys"):
        found[_FACTS.get(key, key.replace("_", " "))] = {name: told.get(key) for name, told in of_parts.items()}
    told = {key: value for key, value in settings.items() if value and value != _DEFAULTS.get(key)}
    words = [
        f"--{key.replace('_', '-')}" + ("" if value is True else f" {_word(value)}") for key, value in told.items()
    ]
    command = " ".join(["calibrant report", data.path, *words, f"--seed {seed}"])
    names = tuple(data.class_names)
    return Context(title or f"Calibration of {Path(data.path).name}", found, command, names, doubts(data))


_FACTS = {"scores": "values"}
_DEFAULTS = {"methods": "fast", "repeats": 1, "metric": "nll"}


def _word(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
