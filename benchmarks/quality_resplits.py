"""Our sms beside probmetrics' on random splits: ``python benchmarks/quality_resplits.py [--rows 1000] [--splits 4]``.

One split says little where two maps are close. Here val and test of each set of ../shared/data are pooled and split
again: a permutation is cut into up to four parts, each part is fitted on and up to 10,000 of the other rows judge, so
that rows that are easier than others do not favour a map. Prints a table of held-out log-losses.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from quality import ROOT, SKIPPED, Parts, figures_of, load, theirs

MOST, JUDGED, SEED = 4, 10_000, 7000


def splits(parts: Parts, rows: int | None, count: int) -> Iterator[Parts]:
    """Yield splits of the pooled rows into as many to fit on as the set has (or as given) and others to judge on."""
    fit, fit_labels, test, test_labels = parts
    z, y = np.concatenate([fit, test]), np.concatenate([fit_labels, test_labels])
    rows = min(rows or len(fit), len(y) // 2)
    for number in range(count):
        turn, cut = divmod(number, min(len(y) // rows, MOST))
        order = np.random.default_rng(SEED + turn).permutation(len(y))
        chosen = order[cut * rows : (cut + 1) * rows]
        others = np.delete(order, slice(cut * rows, (cut + 1) * rows))[:JUDGED]
        yield z[chosen], y[chosen], z[others], y[others]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--peers", type=Path, default=ROOT / ".venv-peers/bin/python")
    parser.add_argument("--rows", type=int, help="rows to fit on; by default as many as the set's own split has")
    parser.add_argument("--splits", type=int, default=4)
    arguments = parser.parse_args()
    print(
        "| set | probmetrics sms | our svs | our sms | our sms / theirs - 1, and its standard error |\n"
        + "| --- " * 5
        + "|"
    )
    for path in sorted(arguments.data.glob("*.npz")):
        if path.stem in SKIPPED:
            continue
        kind, parts = load(path)
        found = []
        for split in splits(parts, arguments.rows, arguments.splits):
            peer = theirs(kind, split, arguments.peers)["probmetrics sms"].get("nll", np.nan)
            found.append([peer, *(figures_of(name, kind, split)["nll"] for name in ("svs", "sms"))])
        losses = np.array(found)
        ahead = losses[:, 2] / losses[:, 0] - 1.0
        cells = " | ".join(f"{loss:.4f}" for loss in losses.mean(axis=0))
        error = ahead.std() / np.sqrt(len(ahead))
        print(f"| {path.stem} | {cells} | {ahead.mean():+.2%} ± {error:.2%} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
