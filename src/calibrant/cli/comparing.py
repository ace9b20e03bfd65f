"""What a comparison computes from a data set, and what its report says of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..files import Dataset, Rows, read
from ..files.reading import ending
from ..reports import Context
from ..scanning import Scan, scan
from ..selection import Comparison, compare
from ..validation import says_nothing
from .facts import doubts, facts
from .measuring import in_order_of, refuse_moved_positions
from .output import say
from .scans import scan_data


def compared(data: Dataset, seed: int, progress: Any, settings: dict[str, Any], names: dict[str, Any]) -> Comparison:
    """Compare maps: on the test part or file where there is one and no number of folds was asked for."""
    data.need_scores("comparing")
    rows = data.fit
    known = tuple(data.class_names if data.plain_classes else data.classes.tolist())
    other = _read_test(settings["test"], settings["test_labels"], names, known) if settings["test"] else data
    test = other.judged if settings["test"] else data.test
    if other.kind != data.kind:
        raise InvalidInput(f"{data.path} holds {data.kind}, {other.path} holds {other.kind}")
    if settings["cv"] is not None and settings["test"] is None:
        test = None
    how = _asked(settings, seed, progress)
    most = len(rows) if test is not None else len(rows) * (how["cv"] - 1) // how["cv"]
    return compare(
        data.named(rows.scores),
        data.labels(rows),
        test=None if test is None else _test(data, other, test),
        inputs=data.kind,
        classes=None if data.plain_classes else data.classes,
        sample_weight=rows.weights,
        embeddings=rows.embeddings,
        groups=rows.together,
        **{**how, "sizes": _sizes(settings["sizes"], most)},
    )


def compared_scan(
    data: Scan, seed: int, progress: Any, settings: dict[str, Any], names: dict[str, Any], memory: str | None
) -> Comparison:
    """Compare maps on a sample of a scan; the rows to judge on may be another scan, or a file that is read whole."""
    test = None
    if settings["test"]:
        own = {"labels": settings["test_labels"]} if settings["test_labels"] else {}
        other = scan_data(settings["test"], {**names, **own}, memory)
        test = other or scan(settings["test"], names["scores"], own.get("labels", names["labels"]), part=names["part"])
    return compare(data, test=test, **_asked(settings, seed, progress))


def _asked(settings: dict[str, Any], seed: int, progress: Any) -> dict[str, Any]:
    """What `compare` is told by options of the same names."""
    told = {name: settings[name] for name in ("repeats", "metric", "also", "preserve_accuracy", "sizes")}
    wanted = settings["methods"]
    told["methods"] = [name.strip() for name in wanted.split(",")] if "," in wanted else wanted
    return {**told, "cv": settings["cv"] or 5, "random_state": seed, "progress": progress}


def _read_test(path: str, labels: str | None, names: dict[str, Any], known: tuple[Any, ...]) -> Dataset:
    """Read the file to judge on; an .npy file has labels of its own, in another file."""
    if ending(path) == ".npy" and labels is None:
        raise InvalidInput(f"{path} has no labels", hint="name the file that holds them with --test-labels")
    own: dict[str, Any] = {} if labels is None else {"labels": labels}
    return read(path, **{**names, **own}, known=known, whose="the rows of the fit")


def _test(data: Dataset, other: Dataset, test: Rows) -> tuple[Any, ...]:
    """The rows to judge on, their columns in the order of the data to fit on: names decide."""
    names = None if says_nothing(data.class_names) else data.class_names
    order = in_order_of(names, data.classes, other, data.path)
    refuse_moved_positions(other, order)
    scores: NDArray[Any] = test.scores if order is None else np.ascontiguousarray(test.scores[:, order])
    named = other.named(scores) if scores.ndim == 1 else data.named(scores)
    return named, other.labels(test), test.embeddings, test.together, test.weights


def _sizes(wanted: list[int], most: int) -> list[int]:
    """The sizes of a learning curve that there are rows for."""
    beyond = [size for size in wanted if size > most]
    if beyond and len(beyond) == len(wanted):
        raise InvalidInput(f"--sizes asks for more rows than the {most} there are to fit on", seen=str(min(beyond)))
    if beyond:
        say(f"left out of --sizes, as there are {most} rows to fit on: {', '.join(map(str, beyond))}")
    return [size for size in wanted if size <= most]


def report_context(data: Dataset, title: str | None, command: str, *, by_group: bool = False) -> Context:
    """Return where the numbers of a report come from; ``command`` reproduces it; ``by_group``: groups apart."""
    found: dict[str, Any] = {"file": data.path, "SHA-256": data.digest, "scores": data.kind}
    of_parts = {name: facts(data, rows) for name, rows in data.parts.items()}
    for key in dict.fromkeys(key for told in of_parts.values() for key in told if key != "keys"):
        found[_FACTS.get(key, key.replace("_", " "))] = {name: told.get(key) for name, told in of_parts.items()}
    names = tuple(data.class_names)
    return Context(
        title or f"Calibration of {Path(data.path).name}", found, command, names, doubts(data, by_group=by_group)
    )


_FACTS = {"scores": "values"}
