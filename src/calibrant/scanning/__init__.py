"""Rows that need not fit in memory: a source of batches that can be started anew for every pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..files.pieces import Names
from ..parameters import AnyOf, Instance, Integer, OneOf, check_value
from ..passes.room import Room
from .memory import batch_bytes, memory_bytes
from .scanned import Given, Scan, refuse_beside_a_scan
from .sources import source_of
from .watching import watched

__all__ = ["Given", "Scan", "refuse_beside_a_scan", "scan", "watched"]


def scan(
    source: Any,
    scores: Any = None,
    label: Any = None,
    weight: Any = None,
    group: Any = None,
    *,
    part: str | None = None,
    percent: bool = False,
    memory: Any = None,
    sample: int | None = None,
    spill: Any = None,
) -> Scan:
    """Return rows that are read in batches, so that they need not fit in memory. A scan goes wherever arrays go.

    Parameters
    ----------
    source : path, pattern or list of paths; callable; frame; stream
        Files: Parquet, Arrow, .npy and .npz (mapped, or streamed where they are compressed), .csv, .tsv and .jsonl; a
        directory is all files in it. A function without arguments that starts batches anew each time it is called,
        (scores, labels) or (scores, labels, weights), mappings or frames whose names say what is what, as a generator
        function or ``lambda: loader`` does. Arrays, also mapped ones. A pyarrow dataset or table, a polars LazyFrame, a
        DuckDB relation, whatever has ``__arrow_c_stream__``; a Dask array or DataFrame, a Spark DataFrame.
    scores : str or list of str, optional
        A list column, or K columns by their names, a prefix or a pattern such as ``"p_*"``. By default what the names
        of the columns say, as for files that are read whole.
    label, weight, group : str, optional
        Columns or keys; for .npy files other files, for arrays arrays.
    part : str, optional
        Which part of a column ``split`` is read.
    percent : bool
        Probabilities are written as percentages.
    memory : int or str, optional
        What the process may take beyond the interpreter with its imports, such as "500MB"; a fit that needs more says
        so, or is refused. By default batches and rows that are held are sized by a quarter of what is free.
    sample : int, optional
        Look at so many rows only, chosen by a hash of their content: one pass finds them, and they stay in memory.
    spill : path or True, optional
        Where to write a stream that can be read once only, so that it can be read again; True for a temporary file.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant
    >>> def batches():
    ...     for seed in range(3):
    ...         z = np.random.default_rng(seed).normal(size=(500, 4))
    ...         yield z, (z + np.random.default_rng(seed).gumbel(size=z.shape)).argmax(axis=1)
    >>> round(calibrant.make("ts").fit(calibrant.scan(batches)).temperature_, 1)
    1.0
    """
    if sample is not None and not Integer(1).accepts(sample):
        raise InvalidInput("sample must be a number of rows", seen=repr(sample)[:80], allowed="at least 1")
    check_value("part", part, AnyOf(OneOf(None), Instance((str,), "the name of a part")))
    check_value("percent", percent, OneOf(True, False))
    if not isinstance(scores, (str, list, tuple, type(None))):
        raise InvalidInput("scores names columns", seen=type(scores).__name__, allowed="a word, or a list of words")
    given = {"labels": label, "weights": weight, "groups": group}
    beside = {role: value for role, value in given.items() if value is not None and not _is_name(value)}
    named: dict[str, Any] = {role: str(value) for role, value in given.items() if value is not None and _is_name(value)}
    listed = ",".join(map(str, scores)) if isinstance(scores, (list, tuple)) else scores
    names = replace(Names(**named), scores=listed, part=part, percent=percent)
    room = memory_bytes(memory)
    found = source_of(source, names, beside, batch_bytes(room), spill)
    allowed = None if memory is None else Room(room)
    return Scan(found, sample=sample, memory=room, grouped=group is not None, room=allowed)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) or (hasattr(value, "__fspath__") and not isinstance(value, np.ndarray))
