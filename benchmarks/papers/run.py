"""The five papers' experiments on our data, and the page of claims: ``make papers``, or ``make papers QUICK=1``.

python benchmarks/papers/run.py [000 …, or a study by name]: cells are kept under build/papers, so that a stopped run
goes on where it was; ``--fresh`` forgets them. All cells took 26 minutes of one processor, other libraries' fits and
pages not counted. Then docs/evidence/claims.md is written from the records of all papers.
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

STUDIES = {
    "000": ["mixnmatch", "ets"],
    "001": ["kcal", "kcal_losses", "kcal_appendix"],
    "002": ["imax", "kde_edges"],
    "003": ["sweep", "sweep_tables", "sweep_appendix"],
    "004": ["hoki", "hoki_inputs"],
    "beyond": ["field", "field_models"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    every = [name for names in STUDIES.values() for name in names]
    known = [*STUDIES, *every]
    parser.add_argument("wanted", nargs="*", help=f"papers or studies; all where none is named: {', '.join(known)}")
    parser.add_argument("--fresh", action="store_true", help="forget the cells of earlier runs")
    asked = parser.parse_args()
    unknown = [name for name in asked.wanted if name not in known]
    if unknown:
        parser.error(f"no such study: {', '.join(unknown)}; there are {', '.join(known)}")
    warnings.simplefilter("ignore", CalibrationWarning)  # fits on few rows are the point of a learning curve
    for paper, names in STUDIES.items():
        for name in names:
            if not asked.wanted or paper in asked.wanted or name in asked.wanted:
                one(paper, name, asked.fresh)
    if not quick_by_default():
        write_claims()


def one(paper: str, name: str, fresh: bool) -> None:
    """Run one study."""
    module = importlib.import_module(name)
    if fresh:
        (CELLS / f"{paper}-{name}.jsonl").unlink(missing_ok=True)
    study = Study(paper, name, module.SETS, quick_by_default())
    if study.missing:
        print(f"{name}: without {', '.join(study.missing)} (benchmarks/data/README.md)")
    module.run(study)
    study.close()


if __name__ == "__main__":
    main()
