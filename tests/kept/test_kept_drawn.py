"""What drawn calls say is what it was: settings, sizes and sets that nobody wrote down.

Calls are drawn by a number, see `drawn`. Those whose answers hang on the last bit, or on the order of the rows where
scores tie, are not kept.
"""

import json
import os
import warnings

import numpy as np
import pytest
from tests.kept import drawn
from tests.kept.comparing import HERE

COUNTS = {"figure": 1300, "tested": 900, "drawn again": 350, "measured": 60, "grouped": 60, "fitted": 120}
EACH = 20  # calls in one test
PARTS = [(family, first) for family, count in COUNTS.items() for first in range(0, count, EACH)]


def kept():
    path = HERE / "drawn.json"
    return json.loads(path.read_text()) if path.exists() else {}


KEPT = kept()


@pytest.mark.parametrize(("family", "first"), PARTS, ids=lambda part: str(part))
@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_drawn_calls_say_what_they_did(family, first):
    known = KEPT.get(family, {})
    for seed in range(first, first + EACH):
        call, n = drawn.case(family, seed)
        if str(seed) in known:
            found = drawn.told(call, np.arange(n))
            assert drawn.agree(known[str(seed)], found, 2e-4), f"{family} {seed}: {found} was {known[str(seed)]}"


def write(found):
    """Write what stable calls say, one a line."""
    parts = []
    for family, calls in found.items():
        told = ",\n".join(f'"{seed}": {json.dumps(value)}' for seed, value in calls.items() if value is not None)
        parts.append(f'"{family}": {{\n{told}\n}}')
    (HERE / "drawn.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")


if os.environ.get("CALIBRANT_KEEP"):
    warnings.simplefilter("ignore")
    write({name: {seed: drawn.stable(*drawn.case(name, seed)) for seed in range(n)} for name, n in COUNTS.items()})
    KEPT = kept()
