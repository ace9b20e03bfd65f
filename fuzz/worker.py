"""One process of a fuzzer: it tries input after input, and says where it is, so that its death tells of the input."""

from __future__ import annotations

import argparse
import importlib
import json
import mmap
import struct
import sys
import time
import traceback

from .harness import generator, watched

FUZZERS = ("kernels", "calls", "arrays", "saved", "states", "readers")


def try_one(fuzzer: str, seed: int, index: int) -> str:
    """Try one input and return what it was; whatever is wrong is raised."""
    case = importlib.import_module(f"fuzz.{fuzzer}").case
    with watched():
        return case(generator(fuzzer, seed, index))


def main() -> None:
    """Try inputs until the time is over; a line of JSON for each finding, and a last one with the count."""
    parser = argparse.ArgumentParser()
    parser.add_argument("fuzzer", choices=FUZZERS)
    parser.add_argument("seed", type=int)
    parser.add_argument("first", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("place", help="a file of eight bytes that holds the number of the input being tried")
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    index = arguments.first
    with open(arguments.place, "r+b") as file, mmap.mmap(file.fileno(), 8) as place:
        while time.monotonic() < end:
            place[:] = struct.pack("<q", index)
            try:
                try_one(arguments.fuzzer, arguments.seed, index)
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                ours = [frame for frame in frames if "src/calibrant" in frame.filename]
                where = ours[-1] if ours else frames[-1]
                line = {
                    "index": index,
                    "what": f"{type(error).__name__}: {error}"[:400],
                    "where": f"{where.filename}:{where.lineno}",
                }
                print(json.dumps(line), flush=True)
            index += 1
        place[:] = struct.pack("<q", index)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
