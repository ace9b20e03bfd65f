"""Do intervals cover, and do tests keep their level? ``python benchmarks/coverage.py [--samples N] [--seconds S]``.

Draws samples whose truth is known, and counts how often 95 % intervals cover it and tests at 5 % reject. Scores are
calibrated (outcomes drawn from them), or bent by a known curve; events are of 1 to 50 %; n = 50 … 100,000; some scores
are tied as language models tie them, some rows weigh more, some come in clusters of five whose outcomes depend on each
other; classes are 2, 10 and 100. Every cell adds to docs/evidence/coverage.json, so a run that was stopped goes on
where it was. Writes docs/evidence/coverage.md.
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
from scipy.special import expit, logit, ndtr

from calibrant import metrics
from calibrant.cells.pairs import Pairs
from calibrant.metrics.decisions.loss import decision_loss
from calibrant.metrics.estimators.calibration_error import error_of_pairs
from calibrant.metrics.estimators.cox import line_of
from calibrant.metrics.estimators.two_bin import averaged_two_bin
from calibrant.metrics.inference.resampling import Sampling
from calibrant.metrics.table import TABLE
from calibrant.metrics.views.forecasts import Forecasts, read

ROOT = Path(__file__).resolve().parents[1]
RECORD, PAGE = ROOT / "docs/evidence/coverage.json", ROOT / "docs/evidence/coverage.md"
SIZES = (50, 200, 1000, 10_000, 100_000)
PREVALENCES = (0.01, 0.05, 0.2, 0.5)
LARGE = 1_000_000  # rows that tell the truth
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
)
RESAMPLED = (
    "ici",
    "e50",
    "e90",
    "emax",
    "ece",
    "ece_sweep",
    "ece_debiased",
    "smece",
    "ks_error",
    "ecce",
    "averaged_two_bin",
)
SLOW = ("decision_loss", "variational_error")
QUICK_TESTS, SLOW_TESTS = ("ecce", "ks", "cox", "spiegelhalter"), ("sweep", "two_bin")
KINDS = ("plain", "ties", "weights", "clusters")


def too_extreme(p: np.ndarray, prevalence: float) -> np.ndarray:
    """Frequencies whose log-odds are 0.7 times as far from a middle as the scores', and 0.2 higher."""
    middle = logit(prevalence)
    return expit(middle + 0.2 + 0.7 * (logit(np.clip(p, 1e-9, 1 - 1e-9)) - middle))


LAWS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {"true": lambda p, _: p, "bent": too_extreme}


def scores(rng: np.random.Generator, n: int, prevalence: float) -> np.ndarray:
    """Skewed scores, most near 0, for rare events; fairly even ones else."""
    shape = 0.5 if prevalence < 0.1 else 1.5
    return np.clip(rng.beta(shape, shape * (1 - prevalence) / prevalence, n), 1e-9, 1 - 1e-9)


def sample(rng: np.random.Generator, n: int, prevalence: float, law: str, kind: str) -> dict[str, Any]:
    """Outcomes, scores, and weights or clusters; the frequency at every score is the law's."""
    p = scores(rng, n, prevalence)
    u, extra = rng.random(n), {}
    if kind == "ties":
        p = np.round(p, 1 if prevalence >= 0.1 else 2)
    elif kind == "weights":
        extra["sample_weight"] = rng.lognormal(0, 0.7, n)
    elif kind == "clusters":
        own = np.arange(n) // 5
        own_score, common = scores(rng, own[-1] + 1, prevalence)[own], rng.normal(size=own[-1] + 1)[own]
        p = np.clip(0.7 * own_score + 0.3 * p, 1e-9, 1 - 1e-9)
        u = ndtr(np.sqrt(0.5) * common + np.sqrt(0.5) * rng.normal(size=n))
        extra["clusters"] = own
    return {"y": (u < LAWS[law](p, prevalence)).astype(int), "p": p, **extra}


_TRUTH: dict[Any, dict[str, float]] = {}


def truth(prevalence: float, law: str, kind: str) -> dict[str, float]:
    """What the figures are of a million rows, and errors of the law itself, without outcomes."""
    key = prevalence, law, kind
    if key not in _TRUTH:
        rng = np.random.default_rng(7)
        drawn = sample(rng, LARGE, prevalence, law, kind)
        y, p = drawn["y"], drawn["p"]
        c = LAWS[law](p, prevalence)
        gap = np.abs(c - p)
        known = {"ici": gap.mean(), "e50": np.median(gap), "e90": np.quantile(gap, 0.9), "emax": gap.max()}
        known |= {"ece": gap.mean(), "ece_sweep": gap.mean(), "variational_error": gap.mean()}
        known |= dict.fromkeys(("ece_crossfit", "ece_debiased"), float(np.sqrt((gap**2).mean())))
        pairs = Pairs(p, c)  # outcomes replaced by their expectation: no noise
        for name, estimator in {"ks_error": "ks", "ecce": "ecce", "smece": "smooth"}.items():
            known[name] = error_of_pairs(pairs, estimator=estimator)
        known["mce"] = error_of_pairs(pairs, norm="max")
        known |= {"averaged_two_bin": averaged_two_bin(pairs), "decision_loss": decision_loss(pairs)}
        known["observed_expected"] = c.mean() / p.mean()
        line, shift = line_of(pairs).fit.theta, line_of(pairs, slope=False).fit.theta
        known |= {"calibration_slope": line[1], "calibration_intercept": line[0], "calibration_in_the_large": shift[0]}
        known |= {"event_rate": c.mean(), "brier": ((p - c) ** 2 + c * (1 - c)).mean()}
        known["nll"] = -(c * np.log(p) + (1 - c) * np.log1p(-p)).mean() if kind != "ties" else np.nan
        known["scaled_brier"] = 1 - known["brier"] / (c.mean() * (1 - c.mean()))
        t = prevalence
        known["net_benefit"] = ((p >= t) * (c - (1 - c) * t / (1 - t))).mean()
        known["auroc"] = metrics.auroc(y, p)
        _TRUTH[key] = {name: float(value) for name, value in known.items()}
    return _TRUTH[key]


def one(
    drawn: dict[str, Any], names: tuple[str, ...], tests: tuple[str, ...], seed: int, t: float, known: dict
) -> dict:
    """Of one sample: whether each interval was offered and covers, and whether each test rejects."""
    forecasts: Forecasts = read(drawn["y"], drawn["p"], drawn.get("sample_weight")).clustered(drawn.get("clusters"))
    sampling = Sampling(200, np.random.default_rng(seed), 100)
    found = {}
    for name in names:
        options = {"threshold": t} if name == "net_benefit" else {}
        interval = TABLE[name].interval(forecasts, 0.95, sampling, **options)
        offered = interval.low is not None and np.isfinite(known[name])
        slack = 1e-12 + 1e-9 * abs(known[name])
        value = offered and interval.low - slack <= known[name] <= interval.high + slack
        found[name] = (int(offered), int(value))
    for method in tests:
        got = metrics.calibration_test(
            drawn["y"],
            drawn["p"],
            method=method,
            resamples=199,
            random_state=seed,
            sample_weight=drawn.get("sample_weight"),
            clusters=drawn.get("clusters"),
        )
        found["test " + method] = (1, int(got.pvalue <= 0.05))
    return found


def classes(rng: np.random.Generator, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    p = rng.dirichlet(np.full(k, 0.5 if k > 2 else 1.0), n)
    return (p.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1), p


def cells() -> list[dict[str, Any]]:
    """All cells, the quick ones first."""
    grid = [{"law": law, "kind": "plain", "prevalence": q, "n": n} for law in LAWS for q in PREVALENCES for n in SIZES]
    grid += [
        {"law": law, "kind": kind, "prevalence": q, "n": n}
        for kind in KINDS[1:]
        for law in LAWS
        for q in (0.05, 0.5)
        for n in (200, 1000)
    ]
    quick = [{**cell, "part": "quick"} for cell in grid]
    slow = [{**cell, "part": "slow"} for cell in grid if cell["n"] <= 10_000]
    many = [
        {"law": "true", "kind": "classes", "k": k, "n": n, "part": "classes"} for k in (2, 10, 100) for n in (200, 2000)
    ]
    return quick + many + slow


def run(cell: dict[str, Any], seed: int) -> dict[str, tuple[int, int]]:
    rng = np.random.default_rng([seed, *(ord(c) for c in json.dumps(cell, sort_keys=True))])
    if cell["part"] == "classes":
        y, p = classes(rng, cell["n"], cell["k"])
        found = metrics.measure(y, p, resamples=199, random_state=seed)
        out = {
            name: (int(i.low is not None), int(i.low is not None and i.low <= 0))
            for name, i in found.metrics.items()
            if i.norm
        }
        out["test sweep"] = (1, int(found.test.pvalue <= 0.05))
        out["test skce"] = (
            1,
            int(metrics.calibration_test(y, p, method="skce", resamples=199, random_state=seed).pvalue <= 0.05),
        )
        return out
    drawn = sample(rng, cell["n"], cell["prevalence"], cell["law"], cell["kind"])
    known = truth(cell["prevalence"], cell["law"], cell["kind"])
    names, tests = (QUICK, QUICK_TESTS) if cell["part"] == "quick" else (RESAMPLED + SLOW, SLOW_TESTS)
    return one(drawn, names, tests, seed, cell["prevalence"], known)


def key_of(cell: dict[str, Any]) -> str:
    return json.dumps(cell, sort_keys=True)


def study(samples: int, seconds: float) -> dict[str, Any]:
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    end, block = time.process_time() + seconds, 20
    for wanted in range(block, samples + 1, block):
        for cell in cells():
            share = 1.0 if cell["n"] <= 1000 else 0.5 if cell["n"] <= 10_000 else 0.2
            share *= {"quick": 1.0, "slow": 0.4, "classes": 0.3}[cell["part"]]
            kept = record.setdefault(key_of(cell), {"samples": 0, "counts": {}})
            while kept["samples"] < share * wanted and time.process_time() < end:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = run(cell, kept["samples"])
                for name, (offered, hit) in found.items():
                    had = kept["counts"].setdefault(name, [0, 0])
                    kept["counts"][name] = [had[0] + offered, had[1] + hit]
                kept["samples"] += 1
            RECORD.write_text(json.dumps(record, separators=(",", ":")))
        print(f"{wanted} samples a cell, {end - time.process_time():.0f} s left", flush=True)
        if time.process_time() >= end:
            break
    return record


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=3000.0)
    parser.add_argument("--page", action="store_true", help="only write the page from what is recorded")
    given = parser.parse_args()
    record = json.loads(RECORD.read_text()) if given.page else study(given.samples, given.seconds)
    from coverage_page import page

    PAGE.write_text(page(record))


if __name__ == "__main__":
    main()
