"""Run the fuzzers for some time, each in processes of its own: ``python -m fuzz --seconds 60 --seed 1 --log run.log``.

It ends after so many seconds, or after ``--inputs`` of them; with the log of a run that was ended it goes on where
that was. An input is known by its fuzzer, its seed and its number; ``python -m fuzz --one arrays:1:4711`` tries it
again, and ``corpus/inputs.txt`` lists those that once found something, which every run tries first.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .worker import FUZZERS, try_one

SLICE = 240.0  # seconds that a process lives: what it may leak is gone with it
PATIENCE = 600.0  # seconds beyond its time after which a process hangs; ten of processor time may take minutes
CORPUS = Path(__file__).parent / "corpus" / "inputs.txt"
ROOT = Path(__file__).parents[1]


class Run:
    """Counts inputs and findings of each fuzzer, and writes both down."""

    def __init__(self, seed: int, log: Path | None) -> None:
        self.seed = seed
        self.log = log
        self.next = dict.fromkeys(FUZZERS, 0)
        self.findings = 0
        for line in log.read_text().splitlines() if log is not None and log.exists() else []:
            if f" seed {seed}: " in line:
                self.next |= {name: int(n.replace(",", "")) for n, name in re.findall(r"([\d,]+) ([a-z]+)[,;]", line)}
                self.findings = int(re.findall(r"(\d+) found", line)[0])

    def say(self, line: str) -> None:
        """Print a line, and keep it in the log."""
        print(line, flush=True)
        if self.log is not None:
            with self.log.open("a") as out:
                out.write(line + "\n")

    def find(self, fuzzer: str, index: int, what: str) -> None:
        """Count and tell a finding."""
        self.findings += 1
        self.say(f"FOUND {fuzzer}:{self.seed}:{index} {what}")

    def slice(self, fuzzer: str, seconds: float) -> None:
        """Let one process try inputs for a while, and go on behind the input that ended it, if one did."""
        with tempfile.NamedTemporaryFile() as place:
            place.write(bytes(8))
            place.flush()
            first = self.next[fuzzer]
            command = [
                sys.executable,
                "-m",
                "fuzz.worker",
                fuzzer,
                str(self.seed),
                str(first),
                str(seconds),
                place.name,
            ]
            try:
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds + PATIENCE)
                output, code, errors = done.stdout, done.returncode, done.stderr
            except subprocess.TimeoutExpired as slow:
                output = slow.stdout.decode() if isinstance(slow.stdout, bytes) else (slow.stdout or "")
                code, errors = None, ""
            place.seek(0)
            (index,) = struct.unpack("<q", place.read(8))
        for line in output.splitlines():
            found = json.loads(line)
            self.find(fuzzer, found["index"], f"{found['what']} at {found['where']}")
        if code is None:
            self.find(fuzzer, index, "the process hangs")
        elif code:
            self.find(fuzzer, index, f"the process ended with {code}: {errors.strip()[-600:]}")
        self.next[fuzzer] = index + (1 if code != 0 else 0)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--inputs", type=int, default=10**12, help="of all fuzzers together, after which the run ends")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=FUZZERS, default=list(FUZZERS))
    parser.add_argument("--log", type=Path)
    parser.add_argument("--one", help="fuzzer:seed:number of an input to try again")
    arguments = parser.parse_args()
    if arguments.one:
        fuzzer, seed, index = arguments.one.split(":")
        print(try_one(fuzzer, int(seed), int(index)))
        return
    run = Run(arguments.seed, arguments.log)
    _replay(run, arguments.only)
    end = time.monotonic() + arguments.seconds
    while (left := end - time.monotonic()) > 0 and sum(run.next.values()) < arguments.inputs:
        for fuzzer in arguments.only:
            run.slice(fuzzer, min(SLICE, max(1.0, left / len(arguments.only))))
        counts = ", ".join(f"{run.next[f]:,} {f}" for f in arguments.only)
        run.say(f"{time.strftime('%H:%M:%S')} seed {run.seed}: {counts}; {run.findings} found")
    run.say(f"TOTAL {sum(run.next.values()):,} inputs, {run.findings} found")
    raise SystemExit(run.findings > 0)


def _replay(run: Run, only: list[str]) -> None:
    """Try the inputs that have found something before."""
    for line in CORPUS.read_text().splitlines() if CORPUS.exists() else []:
        known = line.split("#")[0].strip()
        if not known or known.split(":")[0] not in only:
            continue
        done = subprocess.run([sys.executable, "-m", "fuzz", "--one", known], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            run.findings += 1
            run.say(f"FOUND AGAIN {known}: {done.stderr.strip()[-300:]}")


if __name__ == "__main__":
    main()
