"""How much memory a job takes with ``memory=`` allowed, in a process of its own: prints one line of JSON.

``python scale_memory.py ROOM FILE JOB MEMORY``. A job on a few rows comes first, which imports what it needs; what is
told is the peak (VmHWM) less what it was then, and the peak of the process in all, in megabytes of 10⁶ bytes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import calibrant

ROOM, FILE, JOB, MEMORY = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]


def peak() -> float:
    """Megabytes of memory at most so far."""
    text = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM")) * 1024 / 1e6


def run(data: object, fitted: object, to: Path) -> None:
    """Do the job."""
    if JOB == "measure":
        calibrant.measure(data, inputs="logits")
    elif JOB == "apply":
        calibrant.apply(fitted, data, to=to)
    else:
        calibrant.make(JOB).fit(data)


def main() -> None:
    k = np.load(ROOM / "wide.npy" if FILE.startswith("wide") else ROOM / "small.npy", mmap_mode="r").shape[1]
    place = Path(tempfile.mkdtemp(dir=ROOM))
    z = np.random.default_rng(0).standard_normal((400, k), dtype=np.float32)  # few: what they leave behind counts
    np.savez(place / "few.npz", logits=z, labels=np.arange(400) % k)
    few = calibrant.scan(place / "few.npz")
    fitted = calibrant.make("ts").fit(few)
    run(few, fitted, place / "a.npz")
    base = peak()
    labels = {} if FILE.endswith(".parquet") else {"label": ROOM / f"{FILE}_y.npy"}
    path = ROOM / (FILE if FILE.endswith(".parquet") else f"{FILE}.npy")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run(calibrant.scan(path, **labels, memory=MEMORY), fitted, place / f"b{path.suffix}")
    said = any("and memory= allows" in str(one.message) for one in told)
    print(json.dumps({"beyond": peak() - base, "all": peak(), "said": said}), flush=True)
    shutil.rmtree(place)
    os._exit(0)


if __name__ == "__main__":
    main()
