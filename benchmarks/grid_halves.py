"""How much of a figure of the grid is luck of its halves: cells of small sets, which are halved thirty times."""

from __future__ import annotations

from typing import Any

import numpy as np

from grid_scores import MANY, SPLITS

FIGURES = ("log-loss", "Brier score")
THEIRS = ("sigmoid", "isotonic")
_DRAWS = 2000  # of five halves out of the thirty: a share is then known to about one in a hundred


def luck(cells: list[Any], allowed: float) -> list[str]:
    """Return the part of the page, nothing where there are no such cells."""
    if not cells:
        return []
    lines = [_line(cell, figure, allowed) for cell in cells for figure in FIGURES]
    return [
        "## How much of this is luck of five halves", "",
        f"Cells with {MANY} halves. Mean of log(ours / theirs) on the same half in per cent, with its standard error,",
        f"beside the better of theirs; then how often {SPLITS} of these halves, drawn at random, have a median more",
        f"than {allowed:.0f} % behind.", "",
        "| cell | figure | beside | behind, % | ± | five halves say more than 5 % behind |",
        "| --- | --- | --- | --- | --- | --- |", *lines, "",
    ]  # fmt: skip


def noise(cell: Any, figure: str) -> float:
    """Return the standard error of the mean of the cell's halves in per cent, beside the better of theirs."""
    return _better(cell, figure)[2]


def _line(cell: Any, figure: str, allowed: float) -> str:
    better, mean, error = _better(cell, figure)
    late = 100 * _late(cell, figure, allowed)
    return f"| {cell.name} | {figure} | {better} | {mean:+.1f} | {error:.1f} | {late:.0f} % of times |"


def _logs(cell: Any, figure: str) -> dict[str, Any]:
    return {theirs: np.log(cell.ratios(figure, theirs)) for theirs in THEIRS}


def _better(cell: Any, figure: str) -> tuple[str, float, float]:
    """Return which of theirs is the better, how far ours is behind it in per cent, and the standard error of that."""
    logs = _logs(cell, figure)
    better = max(logs, key=lambda theirs: logs[theirs].mean())
    of_it = logs[better]
    return better, float(100 * of_it.mean()), float(100 * of_it.std(ddof=1) / np.sqrt(len(of_it)))


def _late(cell: Any, figure: str, allowed: float) -> float:
    """Return how often the median of five halves is behind one of theirs by more than is allowed."""
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(len(cell.splits))[:SPLITS] for _ in range(_DRAWS)]
    behind = [max(float(np.median(logs[some])) for logs in _logs(cell, figure).values()) for some in drawn]
    return float(np.mean(np.array(behind) > np.log1p(allowed / 100)))
