"""Label shift, groups, several labels and Venn–Abers' promise: ``python benchmarks/shifts.py``; a few minutes.

Writes docs/evidence/shifts.md. With the Python of .venv-peers, ``python benchmarks/shifts.py quapy`` adds QuaPy's EMQ
on the same draws, whose probabilities the first run has kept in benchmarks/.cache/shifts.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
CACHE = ROOT / "benchmarks" / ".cache" / "shifts"
PAGE = ROOT / "docs" / "evidence" / "shifts.md"
SETS = ("cifar10_resnet110", "cifar100_resnet50", "newsgroups20")
DRAWS = 20


def loss(p: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean())


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Logits and labels to fit on, and others to draw from."""
    kept = np.load(SHARED / f"{name}.npz")
    if "logits_val" in kept:
        return kept["logits_val"], kept["labels_val"], kept["logits_test"], kept["labels_test"]
    z, y = np.log(np.maximum(kept["probs"].astype(np.float64), 1e-12)), kept["labels"]
    order = np.random.default_rng(0).permutation(len(y))
    half = len(y) // 2
    return z[order[:half]], y[order[:half]], z[order[half:]], y[order[half:]]


def label_shift() -> list[str]:
    import calibrant

    CACHE.mkdir(parents=True, exist_ok=True)
    lines = [
        "| set | log-loss before | after | true priors | accuracy before | after | L1 | QuaPy: after | L1 | refused |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in SETS:
        z, y, pool, labels = rows_of(name)
        k = z.shape[1]
        map_ = calibrant.PriorShift(calibrant.make("ts")).fit(z, y)
        found, refused, kept = [], 0, {}
        for draw in range(DRAWS):
            rng = np.random.default_rng([draw, k])
            wanted = rng.dirichlet(np.full(k, 1.0 if k <= 20 else 0.5))
            weight = wanted[labels] / np.bincount(labels, minlength=k)[labels]
            rows = rng.choice(len(labels), 2000, p=weight / weight.sum())
            target, t = pool[rows], labels[rows]
            truth = np.bincount(t, minlength=k) / len(t)
            before = map_.adapt(priors=map_.source_priors_).predict_proba(target)
            map_.adapt(target, check=False)
            refused += map_.shift_test_["p_value"] < map_.level
            after, l1 = map_.predict_proba(target), np.abs(map_.priors_ - truth).sum()
            known = map_.adapt(priors=truth).predict_proba(target)
            accuracy = [float((p.argmax(axis=1) == t).mean()) for p in (before, after)]
            found.append([loss(before, t), loss(after, t), loss(known, t), *accuracy, l1])
            kept |= {f"p{draw}": before, f"t{draw}": t, "source": map_.source_priors_}
        np.savez_compressed(CACHE / f"{name}.npz", **kept)
        path = CACHE / f"{name}.json"
        peer = json.loads(path.read_text()) if path.exists() else None
        theirs = f"{peer['after']:.4f} | {peer['l1']:.3f}" if peer else "not run | "
        a = np.mean(found, axis=0)
        lines.append(
            f"| {name} | {a[0]:.4f} | {a[1]:.4f} | {a[2]:.4f} | {a[3]:.3f} | {a[4]:.3f} | {a[5]:.3f} | {theirs} "
            f"| {refused} |"
        )
    return lines


def quapy() -> None:
    from quapy.method.aggregative import EMQ

    for name in SETS:
        kept = np.load(CACHE / f"{name}.npz")
        found = []
        for draw in range(DRAWS):
            p, t = kept[f"p{draw}"].astype(np.float64), kept[f"t{draw}"]
            q, after = EMQ.EM(kept["source"], p, epsilon=1e-4)
            truth = np.bincount(t, minlength=p.shape[1]) / len(t)
            found.append([loss(np.asarray(after), t), np.abs(np.asarray(q) - truth).sum()])
        a = np.mean(found, axis=0)
        (CACHE / f"{name}.json").write_text(json.dumps({"after": a[0], "l1": a[1]}))


def groups() -> list[str]:
    import calibrant

    lines = ["| rows | common map | by group | gained ± standard error |", "| --- | --- | --- | --- |"]
    soccer = np.load(SHARED / "oracle-2" / "groups_soccer.npz")
    parts = [("soccer by league, distorted", soccer["p"], soccer["y"], soccer["group"], soccer["is_fit"].astype(bool))]
    parts.append(("soccer by league, as it is", soccer["p_undistorted"], *parts[0][2:]))
    for spread in (0.0, 0.3, 0.6):
        rng = np.random.default_rng([7, int(10 * spread)])
        sizes = np.geomspace(30, 3000, 20).astype(int) * 2
        g = np.repeat(np.arange(20), sizes)
        odds = rng.normal(size=len(g)) * 1.3 - 4.6
        y = rng.random(len(g)) < 1 / (1 + np.exp(-(odds + spread * rng.normal(size=20)[g])))
        p = 1 / (1 + np.exp(-1.3 * odds - 0.5))
        parts.append(
            (f"20 hospitals, {y.mean():.1%} events, levels ± {spread}", p, y.astype(int), g, np.arange(len(g)) % 2 == 0)
        )
    for name, p, y, g, fit in parts:
        map_ = calibrant.ByGroup(calibrant.make("platt"), inputs="probabilities").fit(p[fit], y[fit], groups=g[fit])
        common = calibrant.make("platt", inputs="probabilities").fit(p[fit], y[fit])
        rest = ~fit
        ours, theirs = map_.predict_proba(p[rest], groups=g[rest]), common.predict_proba(p[rest])
        rows = np.arange(rest.sum())
        gap = np.log(ours[rows, y[rest]]) - np.log(theirs[rows, y[rest]])
        error = gap.std() / np.sqrt(len(gap))
        lines.append(
            f"| {name} | {loss(theirs, y[rest]):.4f} | {loss(ours, y[rest]):.4f} | {gap.mean():+.4f} ± {error:.4f} |"
        )
    return lines


def several_labels() -> list[str]:
    import calibrant

    lines = ["| rows | map | mean log-loss of events before | after |", "| --- | --- | --- | --- |"]
    rng = np.random.default_rng(3)
    odds = rng.normal(size=(6000, 8)) * 2 - np.linspace(0, 3, 8)
    y = (rng.random(odds.shape) < 1 / (1 + np.exp(-(0.6 * odds + 0.3)))).astype(float)
    y[rng.random(y.shape) < 0.2] = np.nan
    kept = np.load(SHARED / "cifar10_resnet110.npz")
    z = np.concatenate([kept["logits_val"], kept["logits_test"]]).astype(np.float64)
    t = np.concatenate([kept["labels_val"], kept["labels_test"]])
    for name, scores, outcomes in (
        ("simulated, a fifth missing", odds, y),
        ("CIFAR-10 heads as events", z, np.eye(10)[t]),
    ):
        half = len(scores) // 2
        for short, binary in (("Platt", calibrant.PlattScaling()), ("logit spline", calibrant.LogitSpline())):
            q = calibrant.MultiLabel(binary).fit(scores[:half], outcomes[:half]).predict_marginals(scores[half:])
            raw = 1 / (1 + np.exp(-scores[half:]))
            figures = []
            for p in (raw, q):
                own = outcomes[half:]
                p = np.clip(p, 1e-12, 1 - 1e-12)
                figures.append(
                    np.nanmean(-np.where(np.isnan(own), np.nan, np.where(own == 1, np.log(p), np.log1p(-p))))
                )
            lines.append(f"| {name} | {short} | {figures[0]:.4f} | {figures[1]:.4f} |")
    return lines


def venn_abers() -> list[str]:
    import calibrant

    lines = [
        "| rows | events | mean of the outcome's own p less the outcome, ± standard error | mean width |",
        "| --- | --- | --- | --- |",
    ]
    for n, power in ((30, 1), (30, 3), (200, 1), (200, 3)):
        gaps, widths = [], []
        for seed in range(1500):
            rng = np.random.default_rng([n, power, seed])
            p = rng.random(n + 1)
            y = (rng.random(n + 1) < p**power).astype(int)
            if 0 < y[:n].sum() < n:
                map_ = calibrant.VennAbers(inputs="probabilities")
                map_.fit_data(_data(p[:n], y[:n]))
                low, high = map_.interval_of(np.log(p[n:]) - np.log1p(-p[n:]))
                gaps.append((high if y[n] else low)[0] - y[n])
                widths.append(high[0] - low[0])
        error = np.std(gaps) / np.sqrt(len(gaps))
        lines.append(f"| {n} | p^{power} | {np.mean(gaps):+.4f} ± {error:.4f} | {np.mean(widths):.3f} |")
    return lines


def _data(p: np.ndarray, y: np.ndarray):
    from calibrant.passes import Block, in_memory

    return in_memory(Block(np.log(np.stack([1 - p, p], axis=1)), y.astype(np.int64), None, 2))


def page() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = [label_shift(), groups(), several_labels(), venn_abers()]
    shift = [line.split("|") for line in parts[0][2:]]
    lower = all(float(row[3]) < float(row[2]) for row in shift)
    fallen = [row[1].strip() for row in shift if float(row[6]) < float(row[5])]
    never = [row for row in (line.split("|") for line in parts[1][2:]) if _worse(row[4])]
    kept = all(_within(line.split("|")[3]) for line in parts[3][2:])
    verdict = [
        f"the correction {'lowers' if lower else 'does not lower'} the mean log-loss on "
        f"{'every set' if lower else 'every set: see below'}",
        f"accuracy falls on {', '.join(fallen)}" if fallen else "accuracy falls on no set",
        "by group is never worse than the common map by more than noise" if not never else
        "by group is worse than the common map by more than noise on: " + ", ".join(row[1].strip() for row in never),
        "Venn–Abers keeps its promise within two standard errors" if kept else
        "Venn–Abers' promise is off by more than two standard errors in a simulation",
    ]  # fmt: skip
    text = ["# Label shift, groups, several labels, Venn–Abers", "", f"**Verdict.** {'; '.join(verdict)}.", ""]
    text += [
        "## Label shift",
        "",
        f"`PriorShift(make('ts'))` fitted on the calibration rows; {DRAWS} draws of 2,000 other rows with",
        "Dirichlet class frequencies (1 for up to 20 classes, .5 for more). Means over draws. Refused are draws with a",
        "p-value below .001, though labels alone have shifted.",
        "",
        *parts[0],
        "",
        "## Groups",
        "",
        "`ByGroup(make('platt'))` on half of the rows, judged on the others. Hospitals have 30 to 3,000 to fit on.",
        "",
        *parts[1],
        "",
        "## Several labels",
        "",
        *parts[2],
        "",
        "## Venn–Abers",
        "",
        "1,500 draws of n rows and one more: p₁ where the event happens, p₀ where not, average to its frequency.",
        "",
        *parts[3],
        "",
    ]
    PAGE.write_text("\n".join(text), encoding="utf-8")
    sys.stdout.write("\n".join(text) + "\n")


def _worse(figure: str) -> bool:
    gap, error = (float(part) for part in figure.split("±"))
    return gap < -2 * error


def _within(figure: str) -> bool:
    gap, error = (float(part) for part in figure.split("±"))
    return abs(gap) <= 2 * error


if __name__ == "__main__":
    quapy() if sys.argv[1:] == ["quapy"] else page()
