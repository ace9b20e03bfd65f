"""Paper 001 (KCal): Tables 2 to 6 and 12, 13, Figures 7 to 10 (d, bandwidth, calibration rows), and its claims."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np
from frame import FAILS, HOLDS, PARTLY, Study, load, shown, table
from scipy.stats import linregress, rankdata

import calibrant
from calibrant.metrics import cwece, ece

SETS = ["fashion_cnn", "tinyimagenet_probe", "imagenet_1000images"]
ON_LOGITS = ["ts", "dirichlet-odir", "imax", "spline", "iop", "gp"]  # the paper's baselines on logits
KERNELS = ["kcal", "kcal-linear", "kcal-logits"]
LOSSES = ["focal", "mmce"]  # its baselines that train the network anew
FIGURES = {"accuracy": "accuracy", "class-wise": "class-wise error", "ece": "ECE", "brier": "Brier", "nll": "NLL"}
PAPER = ["accuracy", "class-wise", "brier"]  # what Table 6 says KCal is best in


def judge(model: calibrant.Calibrator, scores: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the paper's figures: 20 bins of equal mass, entries above max(.01, 1/K), Brier of the top label."""
    p = model.predict_proba(scores).astype(np.float64)
    rows = np.arange(len(y))
    label = model.predict(scores)
    right, confidence = label == y, p[rows, label]
    return {
        "accuracy": float(right.mean()),
        "class-wise": cwece(y, p, bins=20, edges="equal_mass", threshold="kcal"),
        "ece": ece(right.astype(int), confidence, bins=20, edges="equal_mass"),
        "brier": float(((confidence - right) ** 2).mean()),
        "nll": float(-np.log(np.maximum(p[rows, y], 1e-10)).mean()),
    }


@cache
def network(name: str, loss: str = "cross-entropy") -> Any:
    """Return a network's outputs by name; ``loss`` trains it otherwise."""
    import networks
    from torch import nn

    from calibrant.torch.losses import FocalLoss, MMCELoss

    losses = {"cross-entropy": nn.functional.cross_entropy, "focal": FocalLoss(3.0), "mmce": MMCELoss(2.0)}
    recipes = {"digits": networks.digits, "letters": networks.letters}
    base = name.removesuffix(", other patients")
    if base in recipes:
        recipe = recipes[base]()
        made = recipe.of_patients if name != base else recipe.outputs
        return made(loss=losses[loss])
    rows = load(name)
    first = {"fashion_cnn": min(6000, len(rows.labels) // 2), "tinyimagenet_probe": 5050, "imagenet_1000images": 500}[
        name
    ]
    assert rows.embeddings is not None
    return networks.stored(name, rows.logits, rows.embeddings.astype(np.float32), rows.labels, first)


@cache
def learnt(name: str, kind: str, dim: int | None = None) -> Any:
    """Return KCal with its projection learnt on the training rows, once for all splits."""
    outputs = network(name)
    rows = outputs.logits[0] if kind == "kcal-logits" else outputs.embeddings[0]
    options = {} if dim is None else {"dim": dim}
    model = calibrant.make(kind, random_state=0, classes=np.arange(outputs.logits[0].shape[1]), **options)
    return model.fit_projection(rows, outputs.labels[0])


def one(name: str, method: str, seed: int) -> dict[str, float]:
    """Fit one method on one split and judge it."""
    outputs = network(name, method if method in LOSSES else "cross-entropy")
    fit, test = outputs.split(seed)
    y = outputs.labels[1]
    if method in KERNELS:
        scores = outputs.logits[1] if method == "kcal-logits" else outputs.embeddings[1]
        return judge(copy.deepcopy(learnt(name, method)).fit(scores[fit], y[fit]), scores[test], y[test])
    logits, labels = outputs.logits[1][fit], y[fit]
    if not outputs.trained_on:  # the rows that taught the projection are held out: the same rows for all methods
        logits = np.concatenate([outputs.logits[0], logits])
        labels = np.concatenate([outputs.labels[0], labels])
    classes = np.arange(logits.shape[1])
    name_of_map = "identity" if method in ("none", *LOSSES) else method
    model = calibrant.make(name_of_map, classes=classes).fit(logits, labels)
    return judge(model, outputs.logits[1][test], y[test])


def methods_of(name: str) -> list[str]:
    """Return the methods to run on a set: full matrices only below 500 classes, losses only where we train."""
    own = ["none", *ON_LOGITS]
    if name == "imagenet_1000images":
        own.remove("dirichlet-odir")
    trained = name not in SETS
    return [*own, *(LOSSES if trained else []), *KERNELS]


def run(study: Study) -> None:
    """Compute everything, and judge the claims."""
    names = ["digits", "digits, other patients"]
    if not study.quick:
        names += ["letters", "letters, other patients", *study.found]
    seeds = study.size(10, 2)
    keys = [(name, method, seed) for name in names for method in methods_of(name) for seed in range(seeds)]
    cells = study.cells("tables 2 to 6", keys, one)
    claim_k1(study, cells, names)
    claim_k2(study, names)
    claim_k3(study, names)
    claim_k4(study, cells, names)
    dimensions(study, names)
    sizes(study, names)
    page(study, cells, names)


Cells = dict[Any, dict[str, float]]


def column(cells: Cells, name: str, method: str, figure: str) -> np.ndarray:
    """Return a figure over the splits."""
    return np.array([cell[figure] for key, cell in cells.items() if key[:2] == (name, method)])


def ranks(cells: Cells, names: list[str], methods: list[str]) -> dict[str, dict[str, float]]:
    """Return mean ranks over sets and splits (1 is best, ties shared) by figure and method, as in Table 6."""
    found: dict[str, dict[str, float]] = {}
    for figure in FIGURES:
        rows = []
        for name in names:
            values = np.array([column(cells, name, m, figure) for m in methods])
            rows.append(rankdata(-values if figure == "accuracy" else values, axis=0).mean(axis=1))
        found[figure] = dict(zip(methods, np.mean(rows, axis=0), strict=True))
    return found


def common(names: list[str]) -> list[str]:
    """Return the methods that ran on all of these sets, with KCal in its main form only."""
    shared = [m for m in methods_of(names[0]) if all(m in methods_of(name) for name in names)]
    return [m for m in shared if m not in ("kcal-linear", "kcal-logits")]


def claim_k1(study: Study, cells: Cells, names: list[str]) -> None:
    """KCal has the best ranks in class-wise error, accuracy and Brier score."""
    found = ranks(cells, names, common(names))
    told, best = [], 0
    for figure in (*PAPER, "ece"):
        order = sorted(found[figure], key=lambda m: found[figure][m])
        best += figure in PAPER and order[0] == "kcal"
        told.append(
            f"{FIGURES[figure]}: kcal {found[figure]['kcal']:.1f}, first {order[0]} {found[figure][order[0]]:.1f}"
        )
    lost = []
    for name in names:
        gap = column(cells, name, "kcal", "accuracy") - column(cells, name, "none", "accuracy")
        if gap.mean() < -2 * gap.std(ddof=1) / np.sqrt(len(gap)):
            lost.append(f"{name} {100 * gap.mean():+.1f} points")
    verdict = HOLDS if best == len(PAPER) and not lost else PARTLY if best else FAILS
    study.claim(
        code="K1", place="§4.4, Tables 2 to 6", verdict=verdict, page="embeddings",
        found=f"mean ranks over {len(names)} sets of {len(common(names))} methods: {'; '.join(told)}; accuracy "
        f"clearly lost on: "
        f"{', '.join(lost) or 'none'}",
        says="KCal has the best class-wise error, accuracy and Brier score, keeps accuracy, and is competitive in ECE",
        protocol="10 splits; patients of training, calibration and test apart where named; the same rows for all "
        "methods",
    )  # fmt: skip


def claim_k2(study: Study, names: list[str]) -> None:
    """The best bandwidth falls as m^(-1/(d+4))."""
    own = [name for name in names if name in ("digits", "letters", "fashion_cnn")]
    seeds = study.size(5, 2)

    def bandwidth(name: str, m: int, seed: int) -> dict[str, float]:
        outputs = network(name)
        k = outputs.logits[0].shape[1]
        rng = np.random.default_rng([seed, m])
        y = outputs.labels[1]
        chosen = [rng.permutation(np.flatnonzero(y == c))[:m] for c in range(k)]
        rows = np.concatenate(chosen)
        model = copy.deepcopy(learnt(name, "kcal")).fit(outputs.embeddings[1][rows], y[rows])
        return {"bandwidth": float(model.bandwidth_), "d": int(model.points_.shape[1])}

    told, slopes, correlations, rows = [], [], [], []
    for name in own:
        most = int(np.bincount(network(name).labels[1]).min())
        grid = [m for m in (5, 10, 20, 40, 80, 160, 320) if m <= most]
        cells = study.cells("bandwidth", [(name, m, seed) for m in grid for seed in range(seeds)], bandwidth)
        d = next(cell["d"] for key, cell in cells.items() if key[0] == name)
        means = [float(np.median([cells[name, m, seed]["bandwidth"] for seed in range(seeds)])) for m in grid]
        line = linregress([m ** (-1 / (d + 4)) for m in grid], means)
        steep = linregress(np.log(grid), np.log(means)).slope * -(d + 4)  # 1 where the rule is exact
        slopes.append(steep)
        correlations.append(line.rvalue)
        told.append(f"{name} (d = {d}) r = {line.rvalue:.2f}, slope {steep:.1f} times the rule's")
        rows.append([name, *(f"m = {m}: {value:.3f}" for m, value in zip(grid, means, strict=True))])
    linear = min(correlations) >= 0.9
    exact = all(0.5 <= s <= 2 for s in slopes)
    verdict = HOLDS if linear and exact else PARTLY if np.median(correlations) >= 0.7 else FAILS
    study.claim(
        code="K2", place="Lemma 3.2, App. G, Figure 8", verdict=verdict, found="; ".join(told), page="embeddings",
        says="the searched bandwidth is nearly linear in m^(-1/(d+4)), so that it can be computed as rows arrive",
        protocol=f"m rows a class, {seeds} draws, median; slope of log h on log m against -1/(d+4)",
    )  # fmt: skip
    lines = [f"- {row[0]}: {', '.join(row[1:])}" for row in rows]
    study.pages["kcal-bandwidth"] = "\n".join(lines)


def claim_k3(study: Study, names: list[str]) -> None:
    """The loss has one turning point in the bandwidth."""
    own = [name for name in names if "patients" not in name]
    grid = np.geomspace(0.05, 20, 31)

    def losses(name: str) -> list[float]:
        outputs = network(name)
        fit, _ = outputs.split(0)
        base = copy.deepcopy(learnt(name, "kcal")).fit(outputs.embeddings[1][fit], outputs.labels[1][fit])
        found = []
        for factor in grid:
            model = copy.deepcopy(learnt(name, "kcal")).set_params(bandwidth=float(base.bandwidth_ * factor))
            found.append(
                float(model.fit(outputs.embeddings[1][fit], outputs.labels[1][fit]).fit_report_.held_out_after)
            )
        return found

    cells = study.cells("one turning point", [(name,) for name in own], losses)
    # The paper searches its b = 2 h²/d from .1 to 10 times a start: h within a factor of √10 of the best.
    searched = (grid > 10**-0.5) & (grid < 10**0.5)
    told, single = [], []
    for name in own:
        near, far = (turning_points(np.array(cells[name,])[part]) for part in (searched, np.ones(len(grid), bool)))
        single.append(near <= 1)
        told.append(f"{name} {near} ({far})")
    verdict = HOLDS if all(single) else PARTLY if np.mean(single) > 0.5 else FAILS
    study.claim(
        code="K3", place="§3.4, App. H, Figure 9", verdict=verdict, page="embeddings",
        found="turning points of the held-out loss within the paper's range of search (from .05 to 20 times the best): "
        + ", ".join(told),
        says="the loss is convex in the bandwidth, so that golden-section search finds its optimum",
        protocol="31 bandwidths on one split; one turning point or none is what the search needs",
    )  # fmt: skip


def turning_points(losses: np.ndarray) -> int:
    """Count the places where the losses begin to rise or to fall; flat stretches do not count."""
    steps = np.diff(losses)
    signs = np.sign(steps[np.abs(steps) > 1e-9])
    return int((np.diff(signs) != 0).sum())


def claim_k4(study: Study, cells: Cells, names: list[str]) -> None:
    """The network Π is a little better than a linear one (App. D) and than logits (App. E)."""
    told, better = [], 0
    for rival in ("kcal-linear", "kcal-logits"):
        won = lost = 0
        for name in names:
            gap = column(cells, name, rival, "nll") - column(cells, name, "kcal", "nll")
            error = gap.std(ddof=1) / np.sqrt(len(gap))
            won += gap.mean() > 2 * error
            lost += gap.mean() < -2 * error
        better += won > lost
        told.append(f"against {rival}: clearly lower NLL on {won}, higher on {lost} of {len(names)} sets")
    study.claim(
        code="K4", place="App. D and E, Tables 12 and 13", verdict=(FAILS, PARTLY, HOLDS)[better], page="embeddings",
        found="; ".join(told), says="KCal is on average better than with a linear projection and than on logits",
        protocol="as K1",
    )  # fmt: skip


def dimensions(study: Study, names: list[str]) -> None:
    """Figure 7: the effect of d."""
    name = "letters" if "letters" in names else "digits"
    seeds = study.size(5, 1)

    def at(d: int, seed: int) -> dict[str, float]:
        outputs = network(name)
        fit, test = outputs.split(seed)
        model = copy.deepcopy(learnt(name, "kcal", d)).fit(outputs.embeddings[1][fit], outputs.labels[1][fit])
        return judge(model, outputs.embeddings[1][test], outputs.labels[1][test])

    grid = [8, 32] if study.quick else [4, 8, 16, 32, 64]
    cells = study.cells(f"d on {name}", [(d, seed) for d in grid for seed in range(seeds)], at)
    rows = []
    for d in grid:
        found = [cells[d, seed] for seed in range(seeds)]
        rows.append([str(d)] + [shown([c[f] for c in found], 4) for f in FIGURES])
    study.pages["kcal-dimensions"] = f"On {name}:\n\n" + table(["d", *FIGURES.values()], rows)


def sizes(study: Study, names: list[str]) -> None:
    """Figure 10: the effect of the number of calibration rows."""
    name = "letters" if "letters" in names else "digits"
    seeds = study.size(5, 1)

    def at(n: int, seed: int) -> dict[str, float]:
        outputs = network(name)
        order = np.concatenate(outputs.split(seed))
        fit, test = order[:n], order[-2000:] if len(order) > 6000 else order[-400:]
        model = copy.deepcopy(learnt(name, "kcal")).fit(outputs.embeddings[1][fit], outputs.labels[1][fit])
        return judge(model, outputs.embeddings[1][test], outputs.labels[1][test])

    grid = [100, 300] if study.quick else [250, 500, 1000, 2000, 4000]
    cells = study.cells(f"rows on {name}", [(n, seed) for n in grid for seed in range(seeds)], at)
    rows = []
    for n in grid:
        found = [cells[n, seed] for seed in range(seeds)]
        rows.append([str(n)] + [shown([c[f] for c in found], 4) for f in FIGURES])
    study.pages["kcal-rows"] = f"On {name}:\n\n" + table(["rows", *FIGURES.values()], rows)


def page(study: Study, cells: Cells, names: list[str]) -> None:
    """Write docs/evidence/embeddings.md, verdicts first."""
    lines = ["# KCal (paper 001) beside maps on logits", ""]
    lines += [f"- **{c.code} {c.verdict}**: {c.found}." for c in study.claims]
    lines += [
        "",
        '`make papers`. Networks for digits and letters are trained here; "other patients" sees every row through '
        "one of 60",
        "patients, who alter all inputs in a way of their own: 20 train the network, the others calibrate and judge, "
        "apart from",
        "each other. fashion_cnn, tinyimagenet_probe and imagenet_1000images are stored; there held-out rows teach "
        "KCal's",
        "projection, and maps on logits are fitted on these too. 10 splits, mean ± standard error. Figures are the "
        "paper's:",
        "20 bins of equal mass, entries above max(.01, 1/K), Brier score of the top label; NLL from 1e-10 on.",
    ]
    found = ranks(cells, names, common(names))
    rows = [[FIGURES[f]] + [f"{found[f][m]:.1f}" for m in common(names)] for f in FIGURES]
    lines += ["", "## Ranks over all sets (Table 6)", "", table(["figure", *common(names)], rows)]
    for name in names:
        rows = []
        for method in methods_of(name):
            rows.append([method] + [shown(column(cells, name, method, f), 4) for f in FIGURES])
        lines += ["", f"## {name[0].upper()}{name[1:]}", "", table(["map", *FIGURES.values()], rows)]
    lines += ["", "## Searched bandwidth by rows a class (Figure 8)", "", study.pages.pop("kcal-bandwidth")]
    lines += ["", "## Dimensions (Figure 7)", "", study.pages.pop("kcal-dimensions")]
    lines += ["", "## Calibration rows (Figure 10)", "", study.pages.pop("kcal-rows")]
    study.page("embeddings", "\n".join(lines))
