"""What is refused of a damaged state, number by number, is what it was; what is not refused has figures.

Each number is made negative, zero, larger by a little less and a little more than rounding, enormous, or no number.
"""

import copy
import json
import zlib

import numpy as np
import pytest
from tests.kept.comparing import check
from tests.kept.test_kept_metrics import COMMON, COUNTS, FRACTIONS, GROUPS, MANY, TIED

from calibrant import metrics
from calibrant.errors import CalibrantError
from calibrant.metrics.measuring import Measuring
from calibrant.metrics.state import State

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
STATES = {
    "bins": ("ece", {"bins": 4}, (TIED[0], TIED[1], None)),
    "bins of classes": ("cwece", {"bins": 3}, (*MANY, None)),
    "cells": ("calibration_slope", {}, (TIED[0], TIED[1], None)),
    "many cells": ("auroc", {"cells": 16}, (*COMMON, FRACTIONS)),
    "counted cells": ("ks_error", {"cells": 16}, (*COMMON, COUNTS)),
    "moments": ("brier", {}, (*COMMON, None)),
    "fractions": ("nll", {}, (*COMMON, FRACTIONS)),
    "a threshold": ("net_benefit", {"threshold": 0.3}, (TIED[0], TIED[1], None)),
}
CHANGES = {
    "-": lambda x: -x - 1e-3,
    "0": lambda x: 0.0,
    "1": lambda x: x + 1.0,
    "a": lambda x: x * (1 + 4e-7),
    "b": lambda x: x * (1 + 3e-6),
    "c": lambda x: x * (1 - 4e-7),
    "d": lambda x: x * (1 - 3e-6),
    "e": lambda x: x + 5e-10,
    "f": lambda x: x - 5e-10,
    "t": lambda x: 2 * x + 0.5,
    "h": lambda x: 1e99,
    "i": lambda x: 3e100,
    "j": lambda x: 1e15,
    "n": lambda x: float("nan"),
    "o": lambda x: float("inf"),
    "T": lambda x: True,
    "s": lambda x: "x",
    "N": lambda x: None,
    "l": lambda x: [x],
}
LISTS = {
    "short": lambda row: row[:-1],
    "long": lambda row: [*row, row[-1]],
    "none": lambda row: [],
    "turned": lambda row: row[::-1],
}


def places(document, place=()):
    """Yield where numbers, words and lists are; of lists the first, the last and one between."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places(value, (*place, key))
        return
    yield place, document
    if isinstance(document, list):
        for i in sorted({0, len(document) // 2, len(document) - 1} & set(range(len(document)))):
            yield from places(document[i], (*place, i))


def damaged(document, place, value):
    found = copy.deepcopy(document)
    inner = found
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return found


def outcome(read, document):
    """Return R where a state is refused as it is read, r where its figures are, and . where it has some."""
    letter = "R"
    try:
        state = read(document)
        letter = "r"
        if isinstance(state, State):  # measuring takes long
            str(state.finalise())
    except CalibrantError as refusal:
        return letter, str(refusal).split(";")[0].split("(")[0]
    return ".", ""


def told(read, document):
    found, words = {}, set()
    for place, value in places(document):
        some = LISTS if isinstance(value, list) else CHANGES
        if isinstance(value, (bool, str)) or value is None:
            some = {name: CHANGES[name] for name in "NTsl"}
        letters = ""
        for change in some.values():
            letter, why = outcome(read, damaged(document, place, change(value)))
            letters += letter
            words.add("".join(filter(str.isalpha, why)))
        found["/".join(map(str, place))] = letters
    return {**found, "words": zlib.crc32(" ".join(sorted(words)).encode())}


@pytest.mark.parametrize("of", STATES)
def test_damaged_states_are_refused_as_they_were(of):
    name, options, (y, p, w) = STATES[of]
    state = metrics.state(name, **options).update(y, p, sample_weight=w)
    check("damage", of, told(State.from_dict, json.loads(json.dumps(state.to_dict()))))


@pytest.mark.parametrize("of", ["rows", "groups"])
def test_damaged_measurements_are_refused_as_they_were(of):
    rows = slice(0, 12 if of == "rows" else 3)
    groups = {} if of == "rows" else {"groups": GROUPS[rows]}
    state = Measuring(resamples=19, bins=3).update(COMMON[0][rows], np.round(COMMON[1][rows], 1), **groups)
    check("damage", f"measuring {of}", told(Measuring.from_dict, json.loads(json.dumps(state.to_dict()))))
