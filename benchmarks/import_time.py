"""What an import costs, in milliseconds of processor time beyond Python's own start: docs/evidence/import.md."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "import.md"
REPEATS = 15  # the least of so many, interleaved: other work on the machine only adds
LIMIT = 50  # milliseconds that an import of calibrant may cost
CASES = {
    "import calibrant": "import calibrant",
    "NumPy alone": "import numpy",
    "SciPy and scikit-learn as any map uses them": "import scipy.special, scipy.optimize, sklearn.base, sklearn.utils",
    "the first map: `calibrant.TemperatureScaling`": "import calibrant; calibrant.TemperatureScaling",
    "every public name": "import calibrant; [getattr(calibrant, n) for n in calibrant.__all__ if n != 'report']",
    "matplotlib (extra plots)": "import matplotlib.pyplot",
    "jinja2 (extra report)": "import jinja2",
    "rich (extra cli)": "import rich.table, rich.progress",
    "click (extra cli)": "import click",
    "safetensors (when a map is saved or read)": "import safetensors.numpy",
    "onnx (extra onnx)": "import onnx",
    "pyarrow (extra parquet)": "import pyarrow.parquet",
    "torch (extra torch)": "import torch",
}


def seconds(code: str) -> float:
    """Return the processor time of a new Python that runs the code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and write the page."""
    best = dict.fromkeys(["pass", *CASES.values()], float("inf"))
    for _ in range(REPEATS):
        for code in best:
            best[code] = min(best[code], seconds(code))
    cost = {name: 1000 * (best[code] - best["pass"]) for name, code in CASES.items()}
    own = cost["import calibrant"]
    verdict = "holds" if own <= LIMIT else "does not hold"
    lines = [
        "# What an import costs",
        "",
        f"**Verdict: {verdict}.** `import calibrant` takes {own:.1f} ms more than Python (limit {LIMIT}): names load",
        "what they need when they are first used, and neither NumPy nor scikit-learn is loaded before.",
        "",
        "`python benchmarks/import_time.py`: milliseconds of processor time beyond `python -c pass`, "
        f"least of {REPEATS}, interleaved.",
        "",
        "| import | ms |",
        "| --- | --- |",
        *(f"| {name} | {value:.1f} |" for name, value in cost.items()),
    ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
