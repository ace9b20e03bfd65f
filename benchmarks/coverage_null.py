"""Do intervals cover? ``python benchmarks/coverage_null.py [--repeats 1.0]``.

Draws calibrated samples (outcomes drawn from the scores themselves, so that every calibration error is truly 0), and
miscalibrated ones whose errors are known from two million rows, and counts how often the 95 % intervals of `measure`
and `bootstrap` cover. Writes docs/evidence/coverage-null.md.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from calibrant.metrics import Interval, ace, bootstrap, canonical_error, ece_kde, skce
from calibrant.metrics.estimators.calibration_error import error_of
from calibrant.metrics.measuring import CHOICES, measure
from calibrant.metrics.views.forecasts import read

Floats = NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[1]
SIZES = {50: 400, 150: 400, 500: 400, 1500: 300, 10_000: 100, 100_000: 40}  # rows: samples drawn
CLASSES = {(10, 200): 200, (10, 2000): 100, (100, 1000): 60, (100, 10_000): 20}  # classes and rows: samples drawn
SLOW = {50: 100, 500: 60}  # for metrics that cost n² or a density estimate
LARGE = 2_000_000  # rows that tell the truth
RESAMPLES = 200
PREVALENCES = (0.02, 0.3)
Bend = Callable[[Floats], Floats]


def too_extreme(p: Floats) -> Floats:
    """Return frequencies whose log-odds are 0.6 times as far from a middle as those of the scores."""
    middle = logit(np.median(p))
    return expit(middle + 0.6 * (logit(p) - middle))


def too_high(p: Floats) -> Floats:
    """Return frequencies whose log-odds are 0.7 below those of the scores."""
    return expit(logit(p) - 0.7)


BENT = {"too high": too_high, "too extreme": too_extreme}


def event(rng: np.random.Generator, n: int, prevalence: float, bend: Bend = lambda p: p) -> tuple[Floats, Floats]:
    """Return outcomes and the scores they were drawn from, bent."""
    shape = 0.5 if prevalence < 0.1 else 1.0  # skewed scores, most near 0; or fairly even ones
    p = np.clip(rng.beta(shape, shape * (1 - prevalence) / prevalence, n), 1e-12, 1 - 1e-12)
    return (rng.random(n) < bend(p)).astype(np.int64), p


def classes(rng: np.random.Generator, n: int, k: int) -> tuple[NDArray[np.int64], Floats]:
    """Return labels and the probabilities they were drawn from."""
    p = rng.dirichlet(np.full(k, 2.0 / k), n) * 0.98 + 0.02 / k
    return (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1), p


def losses(y: NDArray[np.int64], p: Floats) -> dict[str, float]:
    """Return the mean losses and the rate."""
    if p.ndim == 2:
        own = p[np.arange(len(y)), y]
        brier = ((p**2).sum(axis=1) + 1 - 2 * own).mean()
        return {"rate": float((p.argmax(axis=1) == y).mean()), "brier": float(brier), "nll": float(-np.log(own).mean())}
    happened = np.where(y == 1, p, 1 - p)
    return {"rate": float(y.mean()), "brier": float(((p - y) ** 2).mean()), "nll": float(-np.log(happened).mean())}


class Count:
    """How many intervals were offered, and how many of them covered."""

    def __init__(self) -> None:
        self.drawn, self.offered, self.covered = 0, 0, 0

    def add(self, interval: Interval, truth: float) -> None:
        self.drawn += 1
        if interval.low is not None and interval.high is not None:
            self.offered += 1
            self.covered += interval.low - 1e-12 <= truth <= interval.high + 1e-12

    def __str__(self) -> str:
        if self.offered < 0.01 * self.drawn:
            return "none"
        share = f"{100 * self.covered / self.offered:.0f}"
        if self.offered == self.drawn:
            return share
        offered = f"{100 * self.offered / self.drawn:.0f}"
        return f"{share} (of {'>99' if offered == '100' else offered})"


def cover(draw: Callable, truths: dict[str, Any], repeats: int, key: int) -> tuple[dict[str, Count], Count]:
    """Measure so many samples, and count which intervals cover and which verdicts find nothing."""
    found, quiet = defaultdict(Count), Count()
    for repeat in range(repeats):
        y, p = draw(np.random.default_rng([key, repeat]))
        m = measure(y, p, resamples=RESAMPLES, random_state=repeat)
        quiet.drawn += 1
        quiet.offered += 1
        quiet.covered += m.shape == "none"
        for name, interval in {"rate": m.rate, **m.metrics}.items():
            truth = truths.get(name, 0.0)
            found[name].add(interval, truth(p) if callable(truth) else truth)
    return found, quiet


def slow(n: int, prevalence: float, repeats: int) -> dict[str, Count]:
    """Return how often the intervals of slower metrics cover on calibrated events."""
    found = defaultdict(Count)
    for repeat in range(repeats):
        y, p = event(np.random.default_rng([n, repeat]), n, prevalence)
        for metric in (ece_kde, canonical_error, skce):
            found[metric.__name__].add(bootstrap(metric, y, p, resamples=60, random_state=repeat), 0.0)
    return found


def true_errors(prevalence: float, bend: Bend) -> dict[str, Any]:
    """Return what each figure is on two million rows; the cross-fitted and swept errors from the bent curve itself."""
    y, p = event(np.random.default_rng(1), LARGE, prevalence, bend)
    gap = np.abs(p - bend(p))
    truths = {"ece_crossfit": float(np.sqrt((gap**2).mean())), "ece_sweep": float(gap.mean()), **losses(y, p)}
    truths["rate"] = float(bend(p).mean())
    binned = {"estimator": "binned", "edges": "equal_mass", "norm": 2}  # what the debiased error estimates
    truths["mce"] = largest_of_seen(p, bend(p))
    for name in ("ece", "ece_debiased", "smece", "ks_error"):
        truths[name] = _population(p, bend(p), binned if name == "ece_debiased" else CHOICES[name])
    return truths


def largest_of_seen(p: Floats, frequency: Floats, bins: int = 15) -> Callable[[Floats], float]:
    """Return the true largest gap among those bins in which a sample has rows: a bin without any is not estimated."""
    place = np.minimum((p * bins).astype(int), bins - 1)
    gaps = np.abs(np.bincount(place, p - frequency, bins)) / np.maximum(np.bincount(place, minlength=bins), 1)
    return lambda sample: float(gaps[np.unique(np.minimum((sample * bins).astype(int), bins - 1))].max())


def _population(p: Floats, frequency: Floats, options: dict[str, Any]) -> float:
    """Return an error of the population: each score twice, weighted by how often its event happens and does not."""
    y = np.repeat([1, 0], len(p))
    return error_of(read(y, np.r_[p, p], np.r_[frequency, 1 - frequency]), **options)


def table(head: str, columns: list[str], rows: dict[str, list[str]]) -> list[str]:
    lines = [f"| {head} | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    return [*lines, *(f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows.items()), ""]


def side_by_side(found: list[dict[str, Count]]) -> dict[str, list[str]]:
    return {name: [str(part.get(name, "")) for part in found] for name in found[0]}


def page(scale: float) -> str:
    begun, counts = time.perf_counter(), lambda repeats: max(4, round(scale * repeats))
    lines = ["# Do intervals cover?", "", *INTRODUCTION, "## Calibrated events", ""]
    for prevalence in PREVALENCES:
        truth = losses(*event(np.random.default_rng(1), LARGE, prevalence)) | {"rate": prevalence}
        parts, quiet = [], []
        for n, repeats in SIZES.items():
            found, calm = cover(partial(event, n=n, prevalence=prevalence), truth, counts(repeats), n)
            parts.append(found)
            quiet.append(str(calm))
            print(prevalence, n, {name: str(count) for name, count in found.items()}, str(calm), flush=True)
        rows = side_by_side(parts) | {'"no evidence of miscalibration"': quiet}
        lines += table(f"prevalence {100 * prevalence:g} %", [f"n = {n:,}" for n in SIZES], rows)
    lines += ["## Calibrated events, slower metrics", ""]
    for prevalence in PREVALENCES:
        parts = [slow(n, prevalence, counts(repeats)) for n, repeats in SLOW.items()]
        lines += table(f"prevalence {100 * prevalence:g} %", [f"n = {n:,}" for n in SLOW], side_by_side(parts))
    lines += ["## Calibrated classes", ""]
    parts = []
    for (k, n), repeats in CLASSES.items():
        truth = losses(*classes(np.random.default_rng(1), LARGE // k, k))
        found, calm = cover(partial(classes, n=n, k=k), truth, counts(repeats), n)
        found['"no evidence of miscalibration"'] = calm
        for repeat in range(counts(repeats) // 4):
            y, p = classes(np.random.default_rng([n, repeat]), n, k)
            found["ace"].add(bootstrap(ace, y, p, resamples=40, random_state=repeat), 0.0)
        parts.append(found)
        print(k, n, {name: str(count) for name, count in found.items()}, flush=True)
    lines += table("", [f"K = {k}, n = {n:,}" for k, n in CLASSES], side_by_side(parts))
    lines += ["## Miscalibrated events", "", *MISCALIBRATED]
    for prevalence in PREVALENCES:
        for name, bend in BENT.items():
            truth, parts = true_errors(prevalence, bend), []
            for n in (50, 500, 1500, 10_000):
                found, _ = cover(partial(event, n=n, prevalence=prevalence, bend=bend), truth, counts(SIZES[n] // 2), n)
                parts.append(found)
            print(prevalence, name, {m: [str(part[m]) for part in parts] for m in parts[0]}, flush=True)
            columns = ["truth", *(f"n = {n:,}" for n in (50, 500, 1500, 10_000))]
            rows = {
                m: ["" if callable(truth[m]) else f"{truth[m]:.4f}", *cells] for m, cells in side_by_side(parts).items()
            }
            lines += table(f"{name}, {100 * prevalence:g} %", columns, rows)
    print(f"{time.perf_counter() - begun:.0f} s")
    return "\n".join(lines).rstrip() + "\n"


INTRODUCTION = [
    "`python benchmarks/coverage_null.py`: percent of 95 % intervals that cover the truth; in brackets, of how many",
    "percent of the samples an interval was offered, where not of all. `none`: in less than 1. Outcomes are drawn",
    "from the scores, so that true calibration errors are 0; the truth of rate and losses is that of two million rows.",
    f"{SIZES[50]} samples a cell at 50 rows, {SIZES[1500]} at 1,500, {SIZES[10_000]} at 10,000 and {SIZES[100_000]} at",
    f"100,000; {RESAMPLES} resamples. A share of 95 % of 400 samples has a standard error of 1.1 points, of 100 of",
    "2.2, of 40 of 3.4.",
    "",
    'The last row of a table is the share of samples whose verdict is "no evidence of miscalibration": it should be',
    "95. Lower ends above 0 are rarer still, as they need the test to reject too. Where few events are seen, hardly",
    "any sample has an interval of its losses, and those that do have one were lucky in their events: the share that",
    "covers of these says little.",
    "",
    "On miscalibrated samples (below) the interval of the cross-fitted error is a little short where 500 to 1,500 rows",
    "are half-way between seeing the error and not: its isotonic curve falls short of the true one there.",
    "",
]
MISCALIBRATED = [
    "The same scores, with events that happen less often than said (too high: log-odds less 0.7) or less extremely",
    "(log-odds 0.6 times as far from those of the median score). The truth of each figure is that of two million",
    "scores with their true frequencies, in its own bins and norm; of the cross-fitted and the swept error that of the",
    "curve itself; of the largest gap that of the bins in which a sample has rows.",
    "",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=float, default=1.0, help="factor of the number of samples; 1 writes the page")
    options = parser.parse_args()
    text = page(options.repeats)
    if options.repeats < 1:
        print(text)
    else:
        (ROOT / "docs/evidence/coverage-null.md").write_text(text)


if __name__ == "__main__":
    main()
