"""Files larger than memory, and clusters: ``python benchmarks/scale.py``. Writes docs/evidence/scale.md.

By default 1,000,000 × 100 scores in float32, which takes minutes; ``--rows 10000000`` is what the page is made with.
Every job runs in a process of its own and is written down when it is done; a run that was stopped goes on where it was.
Files are made in ``--room`` and deleted at the end.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from scale_page import BOUNDED, BOUNDS, SMALL, write_page

ROOT = Path(__file__).resolve().parents[1]
MAPS = ("ts", "ets", "irm", "imax", "hb-mass", "vector")
METRICS = ("ece", "cwece", "measure")
CLUSTERS = ("ts", "ets", "imax")


def make_files(room: Path, rows: int, k: int, events: int) -> None:
    """Write over-confident scores and their labels, the same as Parquet (the small part), and events."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if (room / "ready").exists():
        return
    room.mkdir(parents=True, exist_ok=True)
    generator, step = np.random.default_rng(0), 50_000
    labels = np.empty(rows, dtype=np.int64)
    scores = np.lib.format.open_memmap(room / "z.npy", mode="w+", dtype=np.float32, shape=(rows, k))
    for first in range(0, rows, step):
        some = slice(first, min(first + step, rows))
        z = generator.standard_normal((some.stop - first, k), dtype=np.float32) * 2
        ends = np.exp(0.6 * z).cumsum(axis=1)
        labels[some] = (ends < generator.random(len(z), dtype=np.float32)[:, None] * ends[:, -1:]).sum(axis=1)
        scores[some] = z
    scores.flush()
    np.save(room / "y.npy", labels)
    small = rows // SMALL
    np.save(room / "small.npy", scores[:small])
    np.save(room / "small_y.npy", labels[:small])
    with pq.ParquetWriter(
        room / "small.parquet", pa.schema([("label", "int64"), ("logits", pa.list_(pa.float32()))])
    ) as out:
        for first in range(0, small, step):
            part = np.asarray(scores[first : first + step])
            flat, ends = pa.array(part.ravel()), pa.array(np.arange(len(part) + 1, dtype=np.int32) * k)
            batch = {"label": labels[first : first + len(part)], "logits": pa.ListArray.from_arrays(ends, flat)}
            out.write_table(pa.table(batch))
    wide = np.lib.format.open_memmap(room / "wide.npy", mode="w+", dtype=np.float32, shape=(small * k // 1000, 1000))
    for first in range(0, len(wide), 2000):
        wide[first : first + 2000] = 2 * generator.standard_normal(wide[first : first + 2000].shape, dtype=np.float32)
    np.save(room / "wide_y.npy", wide.argmax(axis=1) * (np.arange(len(wide)) % 3 > 0))
    flat, ends = pa.array(np.asarray(scores[:small]).ravel()), pa.array(np.arange(small + 1, dtype=np.int32) * k)
    pq.write_table(  # in one group of rows
        pa.table({"label": labels[:small], "logits": pa.ListArray.from_arrays(ends, flat)}),
        room / "one_group.parquet",
        row_group_size=small,
    )
    p = np.lib.format.open_memmap(room / "p.npy", mode="w+", dtype=np.float32, shape=(events,))
    outcomes = np.lib.format.open_memmap(room / "o.npy", mode="w+", dtype=np.int8, shape=(events,))
    for first in range(0, events, 10 * step):
        some = slice(first, min(first + 10 * step, events))
        p[some] = generator.random(some.stop - first, dtype=np.float32)
        outcomes[some] = generator.random(some.stop - first, dtype=np.float32) < p[some] ** 1.3
    (room / "ready").touch()


def jobs(fits: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the jobs: a file or a cluster, and what is done with it."""
    whole = [("whole", name) for name in (*fits, *METRICS)]
    parquet = [("parquet", name) for name in ("ts", "measure")]
    clusters = [(engine, name) for engine in ("two threads", "dask", "spark") for name in CLUSTERS]
    bounds = [(f"bound {memory}", f"{file} {name}") for file, name in BOUNDED for memory in BOUNDS]
    return [*whole, *parquet, ("events", "measure"), *clusters, *bounds]


def command(room: Path, where: str, what: str) -> list[str]:
    """Return how a job is started."""
    words = ["scale_job.py", str(room), where, what]
    if where.startswith("bound"):
        words = ["scale_memory.py", str(room), *what.split(), where.split()[1]]
    return [sys.executable, "-W", "ignore", str(ROOT / "benchmarks" / words[0]), *words[1:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--events", type=int, help="by default ten times the rows")
    parser.add_argument("--room", type=Path, default=Path("/tmp/calibrant-scale"))
    parser.add_argument("--figures", type=Path, default=ROOT / "build/scale.json")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/evidence/scale.md")
    parser.add_argument("--keep", action="store_true", help="leave the files where they are")
    options = parser.parse_args()
    known = json.loads(options.figures.read_text()) if options.figures.exists() else {}
    setting = {"rows": options.rows, "classes": options.classes, "events": options.events or 10 * options.rows}
    found = known if known.get("setting") == setting else {"setting": setting, "jobs": {}}
    make_files(options.room, options.rows, options.classes, setting["events"])
    for where, what in jobs(MAPS):
        key = f"{where} {what}"
        if key in found["jobs"]:
            continue
        start = time.perf_counter()
        done = subprocess.run(command(options.room, where, what), capture_output=True, text=True)
        told = done.stdout.strip().splitlines()
        found["jobs"][key] = json.loads(told[-1]) if done.returncode == 0 and told else {"failed": done.stderr[-600:]}
        print(key, f"{time.perf_counter() - start:.0f} s", found["jobs"][key], flush=True)
        options.figures.parent.mkdir(parents=True, exist_ok=True)
        options.figures.write_text(json.dumps(found, indent=1))
        write_page(found, options.output)
    write_page(found, options.output)
    if not options.keep:
        shutil.rmtree(options.room)


if __name__ == "__main__":
    main()
