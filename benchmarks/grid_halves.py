"""How much of a figure of the grid is luck of its five halves: the same cells on thirty other halves.

``python benchmarks/grid_halves.py``: all models on wine and, of the other sets, cells that `grid.py` found behind by
more than it allows. Goes on where it was stopped (build/grid/halves.json); `grid.py` puts what it finds on its page.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from grid_scores import KEPT, MODELS, SPLITS

RECORDS = KEPT / "halves.json"
HALVES = range(100, 130)
ALSO = (("nearest neighbours", "breast cancer"), ("network", "breast cancer"))
FIGURES = ("log-loss", "Brier score")
_DRAWS = 2000  # of five halves out of the thirty: a share is then known to about one in a hundred
Figures = dict[str, list[float]]


def section(allowed: float) -> list[str]:
    """Return the part of the page, nothing where it was not run."""
    if not RECORDS.exists():
        return []
    done = json.loads(RECORDS.read_text())
    cells = [(model, of) for model, of in _cells() if all(f"{model} | {of} | {half}" in done for half in HALVES)]
    lines = []
    for model, of in cells:
        records = [done[f"{model} | {of} | {half}"] for half in HALVES]
        lines += [_line(f"{model} on {of}", records, at, allowed) for at in range(len(FIGURES))]
    return [
        "## How much of this is luck of five halves", "",
        f"`python benchmarks/grid_halves.py`: the same cells on {len(HALVES)} other halves. Mean of log(ours / theirs)",
        "on the same half in per cent, with its standard error, beside the better of theirs on these halves; then how",
        f"often five of them, drawn at random, have a median more than {allowed:.0f} % behind.", "",
        "| cell | figure | beside | behind, % | ± | five halves say more than 5 % behind |",
        "| --- | --- | --- | --- | --- | --- |", *lines, "",
    ]  # fmt: skip


def noise(cell: str, figure: str) -> str:
    """Say what the other halves say of a figure, and what the mean of five is known to; nothing where they were not."""
    done = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    model, of = cell.split(" on ")
    records = [done[key] for half in HALVES if (key := f"{model} | {of} | {half}") in done]
    if len(records) < len(HALVES) or figure not in FIGURES:
        return ""
    _, mean, error = _better(records, FIGURES.index(figure))
    of_five = error * np.sqrt(len(HALVES) / SPLITS)
    return f" (on {len(HALVES)} other halves {mean:+.1f} ± {error:.1f} %, so that five are known to ± {of_five:.0f} %)"


def _cells() -> list[tuple[str, str]]:
    return [*((model, "wine") for model in MODELS), *ALSO]


def _line(name: str, records: list[Figures], at: int, allowed: float) -> str:
    better, mean, error = _better(records, at)
    late = 100 * _late(_ratios(records, at), allowed)
    return f"| {name} | {FIGURES[at]} | {better} | {mean:+.1f} | {error:.1f} | {late:.0f} % of times |"


def _ratios(records: list[Figures], at: int) -> dict[str, Any]:
    return {
        theirs: np.array([np.log(r["calibrant"][at] / max(r[theirs][at], 1e-12)) for r in records])
        for theirs in ("sigmoid", "isotonic")
    }


def _better(records: list[Figures], at: int) -> tuple[str, float, float]:
    """Return which of theirs is the better, how far ours is behind it in per cent, and the standard error of that."""
    ratios = _ratios(records, at)
    better = max(ratios, key=lambda theirs: ratios[theirs].mean())
    of_it = ratios[better]
    return better, float(100 * of_it.mean()), float(100 * of_it.std(ddof=1) / np.sqrt(len(of_it)))


def _late(ratios: dict[str, Any], allowed: float) -> float:
    """Return how often the median of five halves is behind one of theirs by more than is allowed."""
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(len(HALVES))[:SPLITS] for _ in range(_DRAWS)]
    behind = [max(float(np.median(r[some])) for r in ratios.values()) for some in drawn]
    return float(np.mean(np.array(behind) > np.log1p(allowed / 100)))


def run(judge: Callable[[str, str, int], Figures]) -> None:
    """Judge what is not judged yet."""
    done = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    for model, of in _cells():
        for half in HALVES:
            key = f"{model} | {of} | {half}"
            if key not in done:
                done[key] = judge(model, of, half)
        RECORDS.write_text(json.dumps(done))
        print(model, of, flush=True)


if __name__ == "__main__":
    from grid import judge as judge_cell

    warnings.simplefilter("ignore")
    run(judge_cell)
