"""Fit presets on request, in whatever environment this runs: one line of JSON in, one out.

``{"names": true}`` asks for the presets; ``{"map": "ts", "n": 1000, "k": 10}`` for the seconds of one fit, by the clock
and of the processors. `fit_before.py` keeps one such process for each version.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import calibrant
from calibrant.registry import names
from generator import realistic


def main() -> None:
    warnings.simplefilter("ignore")
    problems: dict[tuple[int, int], tuple] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if "names" in asked:
            answer = {"names": names()}
        else:
            size = (asked["n"], asked["k"])
            if size not in problems:
                problems.clear()
                problems[size] = realistic(*size)
            made = calibrant.make(asked["map"], classes=range(size[1]))
            wall, processor = time.perf_counter(), time.process_time()
            made.fit(*problems[size])
            answer = {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
