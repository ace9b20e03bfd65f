"""Scores with more than 2^31 entries: kernels and fits on them, against what can be said by hand.

All but three rows are zeros that were never written, which the system holds as one page: the 8.6 GB need no memory.
Prints a line for each check and ends with an error where one fails: ``python scripts/beyond_int32.py``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant
from calibrant import _core

K = 4096
N = 2**31 // K + 257  # 2^31 entries and a million more
ROWS = {0: 3, N // 2: 2, N - 1: 7}  # these rows have a score of 5 in that column, which is their label


def main() -> None:
    """Run every check."""
    z = np.zeros((N, K), np.float32)
    y = np.arange(N) % K
    for row, column in ROWS.items():
        z[row, column], y[row] = 5.0, column
    print(f"{z.size:,} entries, {z.size / 2**31:.4f} of 2^31")
    plain, high = np.log(K), np.log(K - 1 + np.exp(5.0)) - 5.0
    wanted = (N - len(ROWS)) * plain + len(ROWS) * high
    sums = timed("temperature_sums", lambda: _core.temperature_sums(z, y, None, None, np.ones(1), 0, 2))
    assert abs(sums.ravel()[0] / wanted - 1) < 1e-6, (sums.ravel()[0], wanted)
    top = timed("top_log_odds", lambda: _core.top_log_odds(z, 2))
    assert np.flatnonzero(top != top[1]).tolist() == sorted(ROWS), "rows at both ends are seen"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calibrant.CalibrationWarning)
        fitted = timed("a fit of temperature scaling", lambda: calibrant.make("ts").fit(z, y))
    p = fitted.predict_proba(z[-2:])
    assert p[1].argmax() == ROWS[N - 1]
    assert np.allclose(p.sum(axis=1), 1, atol=1e-4)
    print("all right")


def timed(what: str, call: Callable[[], Any]) -> Any:
    """Call, and say how long it took."""
    start = time.monotonic()
    found = call()
    print(f"{what}: {time.monotonic() - start:.1f} s", flush=True)
    return found


if __name__ == "__main__":
    main()
