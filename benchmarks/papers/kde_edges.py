"""App. A3.5 of paper 002: I-Max without the sigmoid model, its edges moved along gradients of kernel densities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from frame import FAILS, HOLDS, PARTLY, Outputs, Study, mean_and_error, shown, table
from imax import IMBALANCED, outputs, split
from imax import SETS as ALL
from scipy.ndimage import gaussian_filter1d

from calibrant import Binning
from calibrant.arrays import log_odds
from calibrant.metrics import mutual_information
from calibrant.plots import edges_over_densities

SETS = [name for name in ALL if name not in IMBALANCED]
BINS = 15
GRID = 4000  # places of the densities
SIGMOID, AFFINE, GRADIENT = "sigmoid model, Eq. 5", "sigmoid model with a and b, Eq. A20", "gradients of densities"
# What a classifier may do to log-odds that were right: nothing, be too sure, be too sure where it is sure.
LAWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as they are": lambda x: x,
    "tripled": lambda x: 3 * x,
    "squared": lambda x: np.sign(x) * x**2 / 4,
}


def densities(scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return places λ and the masses of p(λ, y) there: Gaussian kernels, Scott's width for each y as in Figure 2."""
    low, high = scores.min() - 1, scores.max() + 1
    edges = np.linspace(low, high, GRID + 1)
    masses = []
    for value in (0, 1):
        own = scores[y == value]
        width = own.std() * len(own) ** -0.2 / (edges[1] - edges[0])
        masses.append(gaussian_filter1d(np.histogram(own, edges)[0].astype(float), width, mode="constant") / len(y))
    return 0.5 * (edges[1:] + edges[:-1]), np.stack(masses)


def gradient_edges(scores: np.ndarray, y: np.ndarray, start: np.ndarray, steps: int = 400) -> np.ndarray:
    """Lower L (Eq. 4) over the edges along its gradients; φ is at its optimum for the edges at every step.

    dL/dg_m = p(g_m, y=1) [sp(-φ_{m-1}) - sp(-φ_m)] + p(g_m, y=0) [sp(φ_{m-1}) - sp(φ_m)], sp the softplus. Steps are
    relative to p(g_m), are halved for an edge whose gradient changes its sign, and keep the edges in order.
    """
    places, masses = densities(scores, y)
    cumulated = np.concatenate([np.zeros((2, 1)), masses.cumsum(axis=1)], axis=1)
    spread = scores.std()
    edges, step, before = np.array(start, dtype=float), np.full(len(start), 0.05 * spread), np.zeros(len(start))
    for _ in range(steps):
        at = np.searchsorted(places, edges).clip(1, GRID - 1)
        inside = np.diff(cumulated[:, np.concatenate([[0], at, [GRID]])], axis=1) + 1e-12
        phi = np.log(inside[1] / inside[0])
        gain = [np.logaddexp(0, sign * phi[:-1]) - np.logaddexp(0, sign * phi[1:]) for sign in (1, -1)]
        slope = (masses[0, at] * gain[0] + masses[1, at] * gain[1]) / (masses[:, at].sum(axis=0) + 1e-12)
        direction = -np.sign(slope)
        step = np.where(direction * before < 0, 0.5 * step, np.minimum(1.1 * step, 0.1 * spread))
        edges, before = np.sort(edges + direction * step), direction
    return edges


def found_edges(way: str, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the inner edges by one of the three ways."""
    affine = way == AFFINE
    map_ = Binning("imax", bins=BINS, smoothing=0, monotone=False, affine=affine).fit(scores, y)
    return gradient_edges(scores, y, map_.edges_) if way == GRADIENT else map_.edges_


def run(study: Study) -> None:
    """Judge the variant by the information its bins keep on other rows."""
    names = study.found[:1] if study.quick else study.found
    splits = study.size(5, 2)

    def one(name: str, law: str, seed: int) -> dict[str, float]:
        rows = outputs(name)
        fit, test = split(rows, seed)
        pairs = []
        for part in (fit[:1000], test):
            scores = LAWS[law](log_odds(rows.logits[part])).ravel()
            pairs.append((scores, (np.arange(rows.k) == rows.labels[part][:, None]).astype(int).ravel()))
        (scores, y), (other, truth) = pairs
        kept = {}
        for way in (SIGMOID, AFFINE, GRADIENT):
            kept[way] = mutual_information(truth, other, found_edges(way, scores, y))
        return kept

    cells = study.cells("A3.5", [(n, law, seed) for n in names for law in LAWS for seed in range(splits)], one)
    rows, better, worse, told = [], {}, {}, []
    for law in LAWS:
        better[law] = worse[law] = 0
        shares = []
        for name in names:
            own: list[Any] = [cells[name, law, seed] for seed in range(splits)]
            gap, error = mean_and_error([cell[GRADIENT] - cell[SIGMOID] for cell in own])
            better[law] += gap > 2 * error
            worse[law] += gap < -2 * error
            shares.append(np.mean([c[GRADIENT] for c in own]) / np.mean([c[SIGMOID] for c in own]))
            rows.append([f"{name}, {law}", *(shown([c[way] for c in own], 5) for way in (SIGMOID, AFFINE, GRADIENT))])
        told.append(
            f"log-odds {law}: clearly more information on {better[law]}, less on {worse[law]} of {len(names)} sets "
            f"(median {np.median(shares):.3f} times)"
        )
    bent = [law for law in LAWS if law != "as they are"]
    helps = all(better[law] == len(names) for law in bent)
    works = not any(worse[law] for law in bent)
    study.claim(
        code="I11", place="App. A3.5", verdict=HOLDS if helps else PARTLY if works else FAILS, page="imax-edges",
        found="; ".join(told),
        says="where the sigmoid model is wrong the iteration still works, its edges moved along gradients of densities",
        protocol=f"1,000 rows, the classes' pairs merged, {BINS} bins, information on other rows, {splits} splits; "
        "log-odds as they are and bent, against the closed form of Eq. 5",
    )  # fmt: skip
    head = ["mutual information, bits", SIGMOID, AFFINE, GRADIENT]
    c = study.claims[-1]
    lines = [
        "# App. A3.5 of paper 002: I-Max without the sigmoid model",
        "",
        f"**{c.code} {c.verdict}**: {c.found}.",
        "",
    ]
    lines += [
        "`make papers`. Mean ± standard error over the splits. The sigmoid model takes log-odds at their word; with "
        "a and b "
    ]
    lines[-1] += "it is fitted to them first, which our default does (`affine=True`)."
    lines += ["", *pictures(study, names[0], outputs(names[0])), "", table(head, rows)]
    study.page("imax-edges", "\n".join(lines))


def pictures(study: Study, name: str, rows: Outputs) -> list[str]:
    """Draw the edges of Eq. 5 and of the gradients over the densities of log-odds that were tripled."""
    fit, _ = split(rows, 0)
    scores = LAWS["tripled"](log_odds(rows.logits[fit[:1000]])).ravel()
    y = (np.arange(rows.k) == rows.labels[fit[:1000]][:, None]).astype(int).ravel()
    lines = []
    for way, short in ((SIGMOID, "sigmoid"), (GRADIENT, "gradient")):
        ax = edges_over_densities(scores, y, found_edges(way, scores, y))
        ax.set_title(way)
        lines += [study.picture(f"imax-edges-{short}", ax, f"{name}, log-odds tripled: edges by the {way}"), ""]
    return lines
