"""The five papers' experiments on our data, and the page of claims: ``make papers``, or ``make papers QUICK=1``.

python benchmarks/papers/run.py [000 001 002 003 004 field]: cells are kept under build/papers, so that a stopped run
goes on where it was; ``--fresh`` forgets them. Then docs/evidence/claims.md is written from the records of all papers.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from claims import write_claims
from frame import CELLS, Study, quick_by_default

from calibrant import CalibrationWarning

STUDIES = {"000": "mixnmatch", "001": "kcal", "002": "imax", "003": "sweep", "004": "hoki", "field": "field"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", nargs="*", choices=[*STUDIES, []], help="which papers; all where none is named")
    parser.add_argument("--fresh", action="store_true", help="forget the cells of earlier runs")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", CalibrationWarning)  # fits on few rows are the point of a learning curve
    for paper in asked.papers or STUDIES:
        module = importlib.import_module(STUDIES[paper])
        if asked.fresh:
            (CELLS / f"{paper}.jsonl").unlink(missing_ok=True)
        study = Study(paper, module.SETS, quick_by_default())
        if study.missing:
            print(f"{paper}: without {', '.join(study.missing)} (benchmarks/data/README.md)")
        module.run(study)
        study.close()
    if not quick_by_default():
        write_claims()


if __name__ == "__main__":
    main()
