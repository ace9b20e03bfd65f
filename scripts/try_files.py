"""Put every data file of a directory through measure, compare and report with no option but its path.

Usage: ``python scripts/try_files.py ../shared/data [where to keep the reports]``. Prints a line a file: the exit codes,
the seconds of each command and the size of the report; ends with 1 where any failed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from calibrant.cli.main import main as calibrant
from calibrant.files.reading import FORMATS

COMMANDS = (("measure",), ("compare", "--methods", "fast"), ("report",))


def main(directory: str, reports: str) -> int:
    """Run all and tell."""
    failed = 0
    for path in sorted(p for p in Path(directory).iterdir() if p.suffix in FORMATS):
        page = Path(reports) / f"{path.stem}.html"
        told = []
        for words in COMMANDS:
            output = ("--output", str(page)) if words[0] == "report" else ()
            begun = time.perf_counter()
            code = calibrant([*words, str(path), *output, "--quiet"])
            told.append(f"{words[0]} {code} in {time.perf_counter() - begun:.1f} s")
            failed += code != 0
        size = page.stat().st_size // 1000 if page.exists() else 0
        sys.stderr.write(f"{path.name}: {', '.join(told)}; {size} KB\n")
    sys.stderr.write(f"{failed} failed\n")
    return int(failed > 0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else place))
