"""What every kernel says of rows just as long as its vectors, and one longer or shorter, is what it was."""

import json
import os

import numpy as np
import pytest
from tests.core.calls import KERNELS, Call
from tests.kept.comparing import HERE
from tests.kept.test_kept_core import CLOSE, ROWS_OF_DOUBLES, told

PATH = HERE / "widths.json"
WIDTHS = (2, 4, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65)
ROWS = 5
GRAMS = {"best_quadratic", "convex_on_simplex"}  # of 40 draws: of more columns they are singular, and rounding decides


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel):
    kinds = {"double": np.float64} if kernel in ROWS_OF_DOUBLES else {"double": np.float64, "single": np.float32}
    found = {}
    for name, kind in kinds.items():
        for k in WIDTHS[: -3 if kernel in GRAMS else None]:
            found[f"{kernel} {name} {k}"] = told(kernel, Call(ROWS, k, k + 1, kind, seed=1)(kernel))
    known = json.loads(PATH.read_text()) if PATH.exists() else {}
    if os.environ.get("CALIBRANT_KEEP"):
        known = {name: kept for name, kept in known.items() if name.split()[0] != kernel} | found
        PATH.write_text("{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(known[n])}" for n in sorted(known)) + "\n}\n")
        return
    assert found.keys() == {name for name in known if name.split()[0] == kernel}
    for name, now in found.items():
        close = CLOSE[kinds[name.split()[1]]]
        assert len(now) == len(known[name]), name
        for one, was in zip(now, known[name], strict=True):
            assert one[0] == was[0], name
            assert np.allclose(one, was, rtol=0, atol=close * was[1] + 1e-12), f"{name}: {one} was {was}"
