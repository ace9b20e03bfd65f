"""The page of `scale.py`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from calibrant.files.atomic import replacing
from calibrant.scanning.looking import Wanted

LIMITS = {"ts": 4, "ets": 6, "vector": 12, "irm": 3, "imax": 3, "hb-mass": 3, "ece": 3, "cwece": 3, "measure": 3}
SMALL = 10  # how many times fewer rows the small file has
BOUNDS = ("200MB", "500MB", "1000MB")
BOUNDED = [
    *(("small", name) for name in ("ts", "ets", "irova", "hb-mass", "bbq", "sms", "measure", "apply")),
    *(("wide", name) for name in ("ts", "hb-mass")),
    *(("one_group.parquet", name) for name in ("ts", "measure", "apply")),
]
MOST_MEMORY, MOST_RATIO, MOST_PARQUET, EXPONENT = 600, 2.5, 2.0, 0.1


def ratio(job: dict[str, Any]) -> float:
    """Processor seconds over passes times bare reading, both from the system's cache."""
    return job["seconds"][1] / max(job["passes"] * job["bare"][1], 1e-9)


def from_disk(job: dict[str, Any]) -> float:
    """Seconds by the clock over passes times bare reading, both from the disk."""
    return job["cold"] / (job["passes"] * job["disk"])


def judged(found: dict[str, Any]) -> list[str]:
    """Return the limits that do not hold, in words."""
    jobs, failed, slow = found["jobs"], [], []
    for name, most in LIMITS.items():
        job = jobs.get(f"whole {name}")
        if job is None or "failed" in job:
            failed.append(f"{name} was not measured" if job is None else f"{name} failed")
            continue
        failed += [f"{name} takes {job['passes']} passes (limit {most})"] if job["passes"] > most else []
        failed += [f"{name} takes {job['memory']:.0f} MB (limit 600)"] if job["memory"] > MOST_MEMORY else []
        slow += [f"{name} {from_disk(job):.1f}"] if from_disk(job) > MOST_RATIO else []
        grown = exponent(found, name)
        far = grown is not None and abs(grown - 1) > EXPONENT
        failed += [f"{name} grows with exponent {grown:.2f}{_why(found, name, grown)}"] if far else []
    if slow:
        failed.append(f"times bare reading from the disk (limit 2.5): {', '.join(slow)}")
    for name in ("ts", "measure"):
        job = jobs.get(f"parquet {name}", {})
        if job.get("seconds") and ratio(job) > MOST_PARQUET:
            failed.append(f"{name} on Parquet takes {ratio(job):.1f} × decoding (limit 2)")
    for engine in ("dask", "spark"):
        if not jobs.get(f"{engine} ts", {}).get("seconds"):
            failed.append(f"{engine.title()} was not measured")
    for name in ("ts", "measure"):
        if not jobs.get(f"parquet {name}", {}).get("seconds"):
            failed.append(f"{name} on Parquet was not measured")
    if any(exponent(found, name) is None for name in LIMITS):
        failed.append("growth was not measured for every one")
    events = jobs.get("events measure", {})
    if not events.get("passes"):
        failed.append("the events were not measured")
    elif events["passes"] > 3:
        failed.append("the events took more than three passes")
    return failed + _beyond_bounds(jobs)


def _beyond_bounds(jobs: dict[str, Any]) -> list[str]:
    """Return in words where a job took more than ``memory=`` allowed."""
    failed = []
    for file, name in BOUNDED:
        for memory in BOUNDS:
            job = jobs.get(f"bound {memory} {file} {name}", {})
            taken = job.get("beyond")
            if taken is None:
                failed.append(f"{name} on {file} with {memory} was not measured")
            elif taken > int(memory[:-2]) and not job.get("said"):
                failed.append(f"{name} on {file} takes {taken:.0f} MB with {memory} allowed, and does not say so")
    return failed


def _taken(job: dict[str, Any]) -> str:
    return f"{job['beyond']:.0f} ({job['all']:.0f}){', warned' if job.get('said') else ''}"


def _bounds(found: dict[str, Any]) -> list[str]:
    """Return the table of memory taken against memory allowed."""
    rows, k = found["setting"]["rows"] // SMALL, found["setting"]["classes"]
    first, second = f"{rows:,} × {k}", f"{rows * k // 1000:,} × 1000"
    files = {"small": f"{first}, .npy", "wide": f"{second}, .npy", "one_group.parquet": f"{first}, .parquet"}
    lines = [f"| | | {' | '.join(BOUNDS)} |", "| --- " * (2 + len(BOUNDS)) + "|"]
    for file, name in BOUNDED:
        told = [found["jobs"].get(f"bound {memory} {file} {name}", {}) for memory in BOUNDS]
        cells = [_taken(job) if "beyond" in job else "not measured" for job in told]
        lines.append(f"| {files[file]} | {name} | {' | '.join(cells)} |")
    return lines


def _why(found: dict[str, Any], name: str, grown: float) -> str:
    """Return the limit, and beside what the exponent is to be seen."""
    job = found["jobs"][f"whole {name}"]
    if grown < 1:
        times, whole = job["small"]["seconds"][1], job["seconds"][1]
        fixed = (SMALL * times - whole) / (SMALL - 1)  # what both take, if the rest is in proportion to the rows
        return f" (1 ± .1), less than in proportion: {fixed:.1f} s of it do not depend on the rows"
    reading = math.log10(job["bare"][0] / job["small"]["bare"][0])
    return f" (1 ± .1; bare reading itself {reading:.2f})"


def exponent(found: dict[str, Any], name: str) -> float | None:
    """Return how processor time a pass grows with the rows: 1 is proportional."""
    whole = found["jobs"].get(f"whole {name}", {})
    if not whole.get("small"):
        return None
    times = [job["seconds"][1] / job["passes"] for job in (whole["small"], whole)]
    return math.log10(times[1] / times[0])


def _row(found: dict[str, Any], where: str, name: str) -> str:
    job = found["jobs"].get(f"{where} {name}")
    if job is None or "failed" in job:
        return f"| {name} | not measured | | | | | | | |"
    wall, used = job["seconds"]
    grown = exponent(found, name) if where == "whole" else None
    growth = "" if grown is None else f"{grown:.2f}"
    disk = f"{job['cold']:.0f} s | {from_disk(job):.1f}" if "cold" in job else " |"
    return (
        f"| {name} | {job['passes']} | {job['memory']:.0f} MB | {disk} | {used:.1f} s | {wall:.1f} s | "
        f"{ratio(job):.1f} | {growth} |"
    )


def _clusters(found: dict[str, Any]) -> list[str]:
    lines = [
        "| engine | map | passes | seconds | seconds a pass | largest answer, merged |",
        "| --- " * 6 + "|",
    ]
    for engine in ("two threads", "dask", "spark"):
        for name in ("ts", "ets", "imax"):
            job = found["jobs"].get(f"{engine} {name}", {})
            if job.get("seconds"):
                wall = job["seconds"][0]
                called = {"two threads": "stream", "dask": "Dask, 2 processes", "spark": "Spark local[2]"}[engine]
                size = "nothing is sent" if engine == "two threads" else f"{job['bytes'] / 1e6:.2f} MB"
                lines.append(
                    f"| {called} | {name} | {job['passes']} | {wall:.1f} | {wall / job['passes']:.2f} | {size} |"
                )
    return lines


def _sent(partitions: int, k: int) -> float:
    """Bytes that so many partitions of Spark send in the first look, by the rule of `calibrant.scanning.looking`."""
    size, row = Wanted(0).size(k), 4 * k + 3 * 8  # of a row its scores, key, label and weight
    total = partitions * 8 * 4096  # rows by cell of their keys
    for number in range(1, partitions + 1):
        for most in (size.rows, size.held):
            share = 1.5 * most / number
            total += row * min(most, share + 5 * share**0.5 + 10)
    return total


def _paper(found: dict[str, Any]) -> str:
    """What a fit costs on a cluster, reckoned from the figures."""
    job, k = found["jobs"].get("whole ts", {}), found["setting"]["classes"]
    if not job.get("seconds"):
        return "Not reckoned: ts was not measured."
    rate = found["setting"]["rows"] * job["passes"] / job["seconds"][1]  # rows a processor second
    lines = [
        f"One processor goes through {rate / 1e6:.1f} million rows of {k} scores a second in a fit of ts (of its time, "
        "without waiting for a disk). A partition sends sums of a few numbers in a pass of ts or ets, 8·K bytes for "
        f"vector, and cells for binning: 2 · 8 bytes · F cells a group of classes, {2 * 8 * 2**15 / 1e6:.1f} MB for a "
        f"shared map (F = 2¹⁵) and {2 * 8 * 2**20 / 1e6:.0f} MB at most for one a class (F = 2²⁰/K); the first look "
        "sends samples of the rows and of those that judge, 24 MB when all are merged: a partition sends 1.5 times "
        "its share and a little more; one of Spark, which does not tell how many there are, the share of one more than "
        "its own number. **Dask merges in a tree. Spark's coordinator gets one answer a partition, and merges them two "
        f"at a time**: 1,000 partitions are {_sent(1000, k) / 1e9:.1f} GB in the first look, 10,000 are "
        f"{_sent(10_000, k) / 1e9:.1f} GB; "
        "`coalesce` to a few partitions a worker before.",
        "",
        "| rows | size | a pass on 100 workers of one processor each | ts, 4 passes | reading at 200 MB/s a worker |",
        "| --- | --- | --- | --- | --- |",
    ]
    for power in (9, 12):
        rows = 10**power
        seconds, disk = rows / rate / 100, rows * 4 * k / 2e8 / 100
        lines.append(
            f"| 10^{power} | {rows * 4 * k / 1e12:.1f} TB | {_time(seconds)} | {_time(4 * max(seconds, disk))} | "
            f"{_time(disk)} |"
        )
    lines += [
        "",
        "**Where it stops to pay.** The standard error of log T is about 1/√n times a number near one: 10^7 rows tell "
        "T to three or four digits (±0.0003), 10^9 to ±0.00003, which no one will see in a probability. For maps of "
        "few numbers `scan(…, sample=10_000_000)` reads all rows once, to choose the sample, and is done, where that "
        "many fit in memory. K maps of their own (irova, hb-mass, vector) profit from more rows if classes are rare: "
        "a class of one row in a million has ten rows in 10^7. Measuring pays further: an error of 10^-4 in a bin of a "
        "thousandth of the rows needs 10^10.",
    ]
    return "\n".join(lines)


def _time(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def write_page(found: dict[str, Any], output: Path) -> None:
    """Write what was measured, the limits that do not hold first."""
    setting, failed = found["setting"], judged(found)
    held = "**Every limit holds.**" if not failed else f"**Not every limit holds:** {'; '.join(failed)}."
    size = setting["rows"] * setting["classes"] * 4 / 1e9
    head = (
        "| | passes | memory | from the disk | times bare reading | from the cache: processor | clock | "
        "times bare reading | growth |"
    )
    parts = [
        "# Files larger than memory, and clusters",
        "",
        held,
        "",
        *([found["note"], ""] if found.get("note") else []),
        f"Written by `benchmarks/scale.py --rows {setting['rows']}`: {setting['rows']:,} × {setting['classes']} scores "
        f"in float32 ({size:.1f} GB in .npy), logits of twice a normal, labels drawn at a temperature of 1/0.6. Each "
        "job is a process of its own; memory is its peak beyond the interpreter with everything imported. Bare reading "
        "is the same file read in the same blocks into one buffer. **From the disk**: the system is asked to forget "
        "the file before bare reading and before every pass; both by the clock. This is what a file larger than memory "
        "is, and what the limit of 2.5 is judged by. **From the cache**: the file lies in memory, where reading it is "
        "copying; in processor time of both, which other work on the machine disturbs less than the clock. There "
        "exponentials and logarithms of 10^9 scores stand beside a copy. Growth is the exponent of processor time a "
        "pass from a tenth of the rows to all. Times from the cache are the best of five runs, of two where one takes "
        "more than ten seconds, and of one on clusters and from the disk.",
        "",
        "Limits: passes as in docs/scale.md; 600 MB; 2.5 × bare reading from the disk a pass; growth 1 ± .1; Parquet "
        "2 × decoding.",
        "",
        "## All rows",
        "",
        head,
        "| --- " * 9 + "|",
        *[_row(found, "whole", name) for name in LIMITS],
        "",
        f"## Parquet ({setting['rows'] // 10:,} rows, lists of float32), against decoding it",
        "",
        head,
        "| --- " * 9 + "|",
        *[_row(found, "parquet", name) for name in ("ts", "measure")],
        "",
        f"## {setting['events']:,} events (p, y)",
        "",
        head,
        "| --- " * 9 + "|",
        _row(found, "events", "measure"),
        "",
        "## Memory taken with `memory=` allowed",
        "",
        "Megabytes beyond the interpreter with its imports, and of the process in all behind. A limit: no more than is "
        "allowed, unless a warning said at the start that it would be. The Parquet file is one group of rows.",
        "",
        *_bounds(found),
        "",
        f"## Engines ({setting['rows'] // 10:,} rows, workers started before)",
        "",
        *_clusters(found),
        "",
        "## On paper: 10^9 and 10^12 rows",
        "",
        _paper(found),
        "",
    ]
    with replacing(output) as out:
        out.write("\n".join(parts).encode())


if __name__ == "__main__":
    import json
    import sys

    write_page(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
