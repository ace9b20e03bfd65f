"""Do intervals cover, and do tests keep their level? ``python benchmarks/coverage.py [--samples N] [--seconds S]``.

Draws samples whose truth is known, and counts how often 95 % intervals cover it and tests at 5 % reject. Scores are
calibrated (outcomes drawn from them), or bent by a known curve; events are of 1 to 50 %; n = 50 … 100,000; some scores
are tied as language models tie them, some rows weigh more, some come in clusters of five whose outcomes depend on each
other; classes are 2, 10 and 100, some in such clusters; some rows are in five groups. Every cell adds to
docs/evidence/coverage.json, so a run that was stopped goes on where it was. Writes docs/evidence/coverage.md.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaincinv, expit, logit, ndtr, xlog1py, xlogy

from calibrant import metrics
from calibrant.cells.pairs import Pairs
from calibrant.metrics.decisions.loss import decision_loss
from calibrant.metrics.estimators.calibration_error import error_of_pairs
from calibrant.metrics.estimators.cox import line_of
from calibrant.metrics.estimators.two_bin import averaged_two_bin
from calibrant.metrics.inference.class_test import class_wise_pvalue
from calibrant.metrics.inference.group_test import group_findings
from calibrant.metrics.inference.resampling import Sampling
from calibrant.metrics.scores.ranking import auroc
from calibrant.metrics.table import TABLE
from calibrant.metrics.views.forecasts import Forecasts, read
from coverage_page import FEWEST, page

ROOT = Path(__file__).resolve().parents[1]
RECORD, PAGE = ROOT / "docs/evidence/coverage.json", ROOT / "docs/evidence/coverage.md"
DAYS = ROOT / "docs/evidence/coverage_days.json"  # the first and the last day on which each figure was counted
SIZES = (50, 200, 1000, 10_000, 100_000)
PREVALENCES = (0.01, 0.05, 0.2, 0.5)
LARGE = 100_000  # quantiles of the scores that tell the truth
QUICK = (
    "event_rate",
    "observed_expected",
    "calibration_in_the_large",
    "calibration_slope",
    "calibration_intercept",
    "scaled_brier",
    "auroc",
    "brier",
    "nll",
    "net_benefit",
    "ece_crossfit",
    "mce",
    "test ecce",
    "test ks",
    "test cox",
    "test spiegelhalter",
)
SLOW = (
    "ici",
    "e50",
    "e90",
    "ece",
    "ece_sweep",
    "ece_debiased",
    "smece",
    "ks_error",
    "ecce",
    "averaged_two_bin",
    "decision_loss",
    "variational_error",
    "over_confidence",
    "under_confidence",
    "test sweep",
    "test two_bin",
)
SLOWEST = ("smece", "decision_loss", "variational_error", "over_confidence", "under_confidence")
LEAST = 200  # samples of every figure in every cell, which know a share of 95 % to 1.5 points
RESAMPLES, FEWER = 199, 99  # the second from 10,000 rows on
LEVELS = (FEWEST, 100, LEAST, 400)  # samples that all cells get before any gets more
KINDS = ("plain", "ties", "weights", "clusters", "classes", "classes in clusters")


def too_extreme(p: np.ndarray, prevalence: float) -> np.ndarray:
    """Frequencies whose log-odds are 0.7 times as far from a middle as the scores', and 0.2 higher."""
    middle = logit(prevalence)
    return expit(middle + 0.2 + 0.7 * (logit(np.clip(p, 1e-9, 1 - 1e-9)) - middle))


LAWS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {"true": lambda p, _: p, "bent": too_extreme}


def scores(at: np.ndarray, prevalence: float) -> np.ndarray:
    """Quantiles of skewed scores, most near 0, for rare events; of fairly even ones else."""
    shape = 0.5 if prevalence < 0.1 else 1.5
    return np.clip(betaincinv(shape, shape * (1 - prevalence) / prevalence, at), 1e-9, 1 - 1e-9)


def mixed(own: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Scores of a cluster, which lie together."""
    return np.clip(0.7 * own + 0.3 * p, 1e-9, 1 - 1e-9)


def rounded(p: np.ndarray, prevalence: float) -> np.ndarray:
    return np.round(p, 1 if prevalence >= 0.1 else 2)


def sample(rng: np.random.Generator, n: int, prevalence: float, law: str, kind: str) -> dict[str, Any]:
    """Outcomes, scores, and weights or clusters; the frequency at every score is the law's."""
    p = scores(rng.random(n), prevalence)
    u, extra = rng.random(n), {}
    if kind == "ties":
        p = rounded(p, prevalence)
    elif kind == "weights":
        extra["sample_weight"] = rng.lognormal(0, 0.7, n)
    elif kind == "clusters":
        own = np.arange(n) // 5
        own_score, common = scores(rng.random(own[-1] + 1), prevalence)[own], rng.normal(size=own[-1] + 1)[own]
        p = mixed(own_score, p)
        u = ndtr(np.sqrt(0.5) * common + np.sqrt(0.5) * rng.normal(size=n))
        extra["clusters"] = own
    return {"y": (u < LAWS[law](p, prevalence)).astype(int), "p": p, **extra}


_TRUTH: dict[Any, dict[str, float]] = {}


def truth(prevalence: float, law: str, kind: str) -> dict[str, float]:
    """What the figures are of all scores there are, with frequencies in the place of outcomes: no noise."""
    key = prevalence, law, kind
    if key not in _TRUTH:
        p = scores((np.arange(LARGE) + 0.5) / LARGE, prevalence)
        if kind == "ties":
            p = rounded(p, prevalence)
        elif kind == "clusters":
            few = scores((np.arange(800) + 0.5) / 800, prevalence)
            p = mixed(few[:, None], few[None, :]).ravel()
        c = LAWS[law](p, prevalence)
        gap = np.abs(c - p)
        known = {"ici": gap.mean(), "e50": np.median(gap), "e90": np.quantile(gap, 0.9)}
        known |= {"ece": gap.mean(), "ece_sweep": gap.mean(), "variational_error": gap.mean()}
        over = (p - c) * (p - 0.5) > 0  # too extreme
        known |= {"over_confidence": (gap * over).mean(), "under_confidence": (gap * ~over).mean()}
        known |= dict.fromkeys(("ece_crossfit", "ece_debiased"), float(np.sqrt((gap**2).mean())))
        pairs = Pairs(p, c)
        for name, estimator in {"ks_error": "ks", "ecce": "ecce", "smece": "smooth"}.items():
            known[name] = error_of_pairs(pairs, estimator=estimator)
        known["mce"] = error_of_pairs(pairs, norm="max")
        known |= {"averaged_two_bin": averaged_two_bin(pairs), "decision_loss": decision_loss(pairs)}
        known["observed_expected"] = c.mean() / p.mean()
        line, shift = line_of(pairs).fit.theta, line_of(pairs, slope=False).fit.theta
        known |= {"calibration_slope": line[1], "calibration_intercept": line[0], "calibration_in_the_large": shift[0]}
        known |= {"event_rate": c.mean(), "brier": ((p - c) ** 2 + c * (1 - c)).mean()}
        known["nll"] = -(xlogy(c, p) + xlog1py(1 - c, -p)).mean()  # infinite where what may happen has score 0
        known["scaled_brier"] = 1 - known["brier"] / (c.mean() * (1 - c.mean()))
        t = prevalence
        known["net_benefit"] = ((p >= t) * (c - (1 - c) * t / (1 - t))).mean()
        known["auroc"] = auroc(pairs)
        _TRUTH[key] = {name: float(value) for name, value in known.items()}
    return _TRUTH[key]


def one(drawn: dict[str, Any], figures: list[str], seed: int, t: float, known: dict[str, float]) -> dict[str, Any]:
    """Of one sample: whether each interval was offered and covers, and whether each test rejects."""
    forecasts: Forecasts = read(drawn["y"], drawn["p"], drawn.get("sample_weight")).clustered(drawn.get("clusters"))
    resamples = RESAMPLES if len(drawn["y"]) < 10_000 else FEWER
    sampling, found = Sampling(resamples, np.random.default_rng(seed), 100), {}
    for name in figures:
        if name.startswith("test "):
            options = {"resamples": resamples, "random_state": seed}
            options |= {key: drawn.get(key) for key in ("sample_weight", "clusters")}
            got = metrics.calibration_test(drawn["y"], drawn["p"], method=name[5:], **options)
            found[name] = (1, int(got.pvalue <= 0.05))
            continue
        options = {"threshold": t} if name == "net_benefit" else {}
        interval = TABLE[name].interval(forecasts, 0.95, sampling, **options)
        offered = interval.low is not None and np.isfinite(known[name])
        slack = 1e-12 + 1e-9 * abs(known[name])
        value = offered and interval.low - slack <= known[name] <= interval.high + slack
        found[name] = (int(offered), int(value))
    return found


def simplex(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    return rng.dirichlet(np.full(k, 0.5 if k > 2 else 1.0), n)


def classes(rng: np.random.Generator, n: int, k: int, clusters: np.ndarray | None = None) -> tuple[Any, Any]:
    """Labels drawn from probabilities; those of a cluster share half of what decides them."""
    p, u = simplex(rng, n, k), rng.random(n)
    if clusters is not None:
        common = rng.normal(size=clusters[-1] + 1)[clusters]
        u = ndtr(np.sqrt(0.5) * common + np.sqrt(0.5) * rng.normal(size=n))
    return (p.cumsum(axis=1) > u[:, None]).argmax(axis=1), p


def true_means(k: int) -> dict[str, float]:
    """Accuracy and losses of calibrated classes."""
    if k not in _TRUTH:
        p = simplex(np.random.default_rng(0), LARGE * 4 // k, k)
        _TRUTH[k] = {
            "accuracy": float(p.max(axis=1).mean()),
            "brier": float((1 - (p**2).sum(axis=1)).mean()),
            "nll": float(-(p * np.log(np.maximum(p, 1e-300))).sum(axis=1).mean()),
        }
    return _TRUTH[k]


def cells() -> list[dict[str, Any]]:
    """All cells, the quick ones first, those of most rows last."""
    grid = [{"law": law, "kind": "plain", "prevalence": q, "n": n} for law in LAWS for q in PREVALENCES for n in SIZES]
    grid += [
        {"law": law, "kind": kind, "prevalence": q, "n": n}
        for kind in KINDS[1:4]
        for law in LAWS
        for q in (0.05, 0.5)
        for n in (200, 1000)
    ]
    grid.sort(key=lambda cell: cell["n"])
    quick = [{**cell, "part": "quick"} for cell in grid]
    slow = [{**cell, "part": "slow"} for cell in grid if cell["kind"] == "plain" or cell["n"] == 1000]
    many = [
        {"law": "true", "kind": kind, "k": k, "n": n, "part": "classes"}
        for kind in KINDS[4:]
        for k in (2, 10, 100)
        for n in (200, 2000)
    ]
    groups = [{**cell, "part": "groups"} for cell in grid if cell["law"] == "true" and cell["n"] in (200, 1000, 10_000)]
    return sorted(quick + groups + slow + many, key=lambda cell: cell["n"] == SIZES[-1])


def figures_of(cell: dict[str, Any]) -> tuple[str, ...]:
    """What is counted in a cell; "measure" stands for all errors of a measurement."""
    if cell["part"] == "classes":
        return ("measure", "test class_wise", "test sweep", *(("test skce",) if cell["kind"] == "classes" else ()))
    return {"quick": QUICK, "slow": SLOW, "groups": ("test groups", "gaps of groups")}[cell["part"]]


def wanted_of(cell: dict[str, Any], figure: str, samples: int) -> int:
    """How many of so many samples a figure gets: fewer of many rows and of what is resampled, more of tests."""
    share = {"quick": 1.0, "slow": 0.5, "classes": 0.5, "groups": 1.0}[cell["part"]]
    share *= 1.0 if cell["n"] <= 2000 else 0.5 if cell["n"] <= 10_000 else 0.25
    share *= 0.5 if figure in SLOWEST else 5.0 if figure.startswith("test ") and cell["n"] <= 1000 else 1.0
    return max(round(samples * share), min(samples, LEAST))


def run(cell: dict[str, Any], figures: list[str], seed: int) -> dict[str, tuple[int, int]]:
    rng = np.random.default_rng([seed, *(ord(c) for c in json.dumps(cell, sort_keys=True))])
    if cell["part"] == "groups":
        return grouped(rng, cell, seed)
    if cell["part"] != "classes":
        drawn = sample(rng, cell["n"], cell["prevalence"], cell["law"], cell["kind"])
        known = truth(cell["prevalence"], cell["law"], cell["kind"])
        own = Pairs(drawn["p"], LAWS[cell["law"]](drawn["p"], cell["prevalence"]), drawn.get("sample_weight"))
        known = {**known, "mce": error_of_pairs(own, norm="max")}
        return one(drawn, figures, seed, cell["prevalence"], known)
    clusters = None if cell["kind"] == "classes" else np.arange(cell["n"]) // 5
    y, p = classes(rng, cell["n"], cell["k"], clusters)
    options = {"resamples": RESAMPLES, "random_state": seed, "clusters": clusters}
    out: dict[str, tuple[int, int]] = {}
    for name in figures:
        if name == "measure":
            found = metrics.measure(y, p, **options).figures
            known = true_means(cell["k"])
            for figure, i in found.items():
                some = i.low is not None
                out[figure] = (int(some), int(some and i.low <= known.get(figure, 0.0) <= i.high))
        elif name == "test class_wise":
            pvalue = class_wise_pvalue(read(y, p).clustered(clusters), RESAMPLES, np.random.default_rng(seed))
            out[name] = (1, int(pvalue <= 0.05))
        else:
            out[name] = (1, int(metrics.calibration_test(y, p, method=name[5:], **options).pvalue <= 0.05))
    return out


def grouped(rng: np.random.Generator, cell: dict[str, Any], seed: int) -> dict[str, tuple[int, int]]:
    """Five groups of 8 to 40 % of the rows that do not differ: the test, and whether all gaps' intervals hold 0."""
    drawn = sample(rng, cell["n"], cell["prevalence"], cell["law"], cell["kind"])
    places = np.searchsorted(np.cumsum([0.4, 0.25, 0.15, 0.12, 0.08]), rng.random(cell["n"])).clip(0, 4)
    pairs = read(drawn["y"], drawn["p"], drawn.get("sample_weight")).clustered(drawn.get("clusters")).top
    names, places = np.unique(places, return_inverse=True)
    found = group_findings(pairs, places, [str(name) for name in names], 0.95, RESAMPLES, np.random.default_rng(seed))
    inside = all(row.low <= 0 <= row.high for row in found.rows)
    return {"test groups": (1, int(found.test.pvalue <= 0.05)), "gaps of groups": (1, int(inside))}


def study(samples: int, seconds: float, only: str, rows: int, kinds: str) -> dict[str, Any]:
    """Add samples to every figure of every cell that has not enough, level by level, until the time is over."""
    record, days = (json.loads(kept.read_text()) if kept.exists() else {} for kept in (RECORD, DAYS))
    end, latest = time.process_time() + seconds, time.time() + 3 * seconds
    saved = time.time()
    for step in (*(level for level in LEVELS if level < samples), samples):
        for cell in (one for one in cells() if one["n"] <= rows and one["kind"] in kinds.split(",")):
            kept = record.setdefault(json.dumps(cell, sort_keys=True), {})
            asked = [name for name in figures_of(cell) if any(part in name for part in only.split(","))]
            counted = {name: kept.get("cwece" if name == "measure" else name, [0])[0] for name in asked}
            wanted = {name: wanted_of(cell, name, step) for name in asked}
            for seed in range(min(counted.values(), default=step), max(wanted.values(), default=0)):
                if time.process_time() > end or time.time() > latest:
                    break
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = run(cell, [name for name in asked if counted[name] <= seed < wanted[name]], seed)
                today = time.strftime("%Y-%m-%d", time.gmtime())
                for name, (offered, hit) in found.items():
                    days[name] = [days.get(name, [today])[0], today]
                    had = kept.get(name, [0, 0, 0])
                    kept[name] = [had[0] + 1, had[1] + offered, had[2] + hit]
            if time.time() > saved + 60:
                RECORD.write_text(json.dumps(record, separators=(",", ":")))
                saved = time.time()
        RECORD.write_text(json.dumps(record, separators=(",", ":")))
        DAYS.write_text(json.dumps(days, indent=1, sort_keys=True) + "\n")
        print(f"{step} samples a cell, {end - time.process_time():.0f} s left", flush=True)
        if time.process_time() > end or time.time() > latest:
            break
    return record


def forget(names: list[str]) -> None:
    """Take figures, or all cells of a kind, out of the record: their law was changed."""
    record, days = json.loads(RECORD.read_text()), json.loads(DAYS.read_text())
    DAYS.write_text(json.dumps({name: day for name, day in days.items() if name not in names}, indent=1) + "\n")
    for key, kept in record.items():
        for name in list(kept) if json.loads(key)["kind"] in names else names:
            kept.pop(name, None)
    RECORD.write_text(json.dumps(record, separators=(",", ":")))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=3000.0)
    parser.add_argument("--only", default="", help="figures whose names have one of these in them: a,b,c")
    parser.add_argument("--rows", type=int, default=SIZES[-1], help="only cells of at most so many")
    parser.add_argument("--kinds", default=",".join(KINDS), help="only cells of these")
    parser.add_argument("--forget", nargs="*", default=[], help="figures, or kinds of cells, to count anew")
    parser.add_argument("--page", action="store_true", help="only write the page from what is recorded")
    given = parser.parse_args()
    if given.forget:
        forget(given.forget)
    if given.page:
        record = json.loads(RECORD.read_text())
    else:
        record = study(given.samples, given.seconds, given.only, given.rows, given.kinds)
    for cell in cells():
        kept = record.setdefault(json.dumps(cell, sort_keys=True), {})
        for name in figures_of(cell):
            kept.setdefault("cwece" if name == "measure" else name, [0, 0, 0])  # the page shows what was never counted
    PAGE.write_text(page(record, json.loads(DAYS.read_text())))


if __name__ == "__main__":
    main()
