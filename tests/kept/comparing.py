"""Numbers that are kept from version to version: a change of any of them is meant, or it is a mistake.

``CALIBRANT_KEEP=1 python -m pytest tests/kept`` writes them anew; what that changes belongs in the changelog.
"""

import json
import os
import zlib
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
WORDY = 20  # letters beyond which a text is a sentence
LONG = 6  # numbers in a row beyond which sums stand for them
CLOSE = {"rtol": 2e-6, "atol": 1e-9}  # what other orders of sums may change, and no other method


def flat(value, place=""):
    """Yield every number and word of nested values with its place."""
    if is_dataclass(value):
        value = {part.name: getattr(value, part.name) for part in fields(value)}
    if isinstance(value, dict):
        rows = list(value.values())
        if len(rows) > LONG and all(isinstance(row, dict) and row.keys() == rows[0].keys() for row in rows):
            yield from flat(rows, place)  # a table: by column
            return
        for key, inner in value.items():
            yield from flat(inner, f"{place}/{key}" if place else str(key))
    elif isinstance(value, (list, tuple, np.ndarray)):
        yield from _row(list(value), place)
    else:
        yield place, _one(value)


def _one(value):
    if isinstance(value, str) and len(value) > WORDY:
        letters = "".join(filter(str.isalpha, value))  # numbers in words are rounded, and kept elsewhere
        return f"{value.split()[0]} … {zlib.crc32(letters.encode()):08x}"
    if isinstance(value, (bool, str)) or value is None:
        return str(value)
    return float(f"{float(value):.8g}")


def _row(value, place):
    if len(value) > 1 and all(isinstance(inner, dict) and inner.keys() == value[0].keys() for inner in value):
        yield from flat({key: [inner[key] for inner in value] for key in value[0]}, place)
    elif (numbers := _numbers(value)) is not None and len(numbers) > LONG:
        turns = np.cos(np.arange(len(numbers)))
        yield place, [float(f"{found:.8g}") for found in (len(numbers), numbers.sum(), numbers @ turns)]
    elif len(value) > LONG and numbers is None:
        yield place, zlib.crc32(" ".join(str(_one(inner)) for inner in value).encode())
    else:
        for i, inner in enumerate(value):
            yield from flat(inner, f"{place}/{i}")


def _numbers(value):
    """Return all numbers of a row, or of rows of it, and None where there are words."""
    try:
        numbers = np.asarray(value, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        return None
    return np.nan_to_num(numbers, nan=-1.5, posinf=1e3, neginf=-1e3)


def check(family, name, found, *, more=False):
    """Compare what was found with what is kept under the name, or keep it; ``more`` may have come since."""
    path = HERE / f"{family}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    said = dict(flat(found))
    if os.environ.get("CALIBRANT_KEEP"):
        known[name] = said
        rows = [f"{json.dumps(key)}: {json.dumps(known[key], ensure_ascii=False)}" for key in sorted(known)]
        path.write_text("{\n" + ",\n".join(rows) + "\n}\n")
        return
    assert said.keys() >= known[name].keys() if more else said.keys() == known[name].keys()
    for place, value in known[name].items():
        if isinstance(value, str):
            assert said[place] == value, place
        else:
            assert np.allclose(said[place], value, **CLOSE, equal_nan=True), f"{place}: {said[place]} was {value}"
