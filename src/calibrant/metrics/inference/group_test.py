"""Groups of rows: where probabilities are wrong, with room for many looks, and whether groups differ at all."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtrc, expit, logit

from ...cells.pairs import Pairs, standard_error
from ...types import Integers
from ..estimators.cox import line_of
from ..estimators.cumulative import deviation, ecce
from .clustered import clustered_score, clusters_of
from .cumulative_test import SMALL, cumulative_pvalue
from .intervals import deviations_of
from .testing import CalibrationTest


@dataclass(frozen=True)
class GroupRow:
    """One group: rows, how often the event happened less what was said with its interval, and its cumulative error.

    ``strayed`` is the range of the cumulative curve in standard deviations, and ``pvalue`` that of the range, times the
    number of groups; one equal to ``floor`` is an upper bound, as resamples tell no smaller one. ``detectable`` is the
    gap in the mean that so many rows would show in four samples of five. ``small`` says that there are too few rows to
    judge, Σs(1-s) < 11, unless the p-value is small all the same.
    """

    name: str
    rows: float
    gap: float
    low: float
    high: float
    strayed: float
    pvalue: float
    detectable: float
    small: bool
    floor: float = 0.0

    @property
    def p(self) -> str:
        """The p-value as it is shown: ``0.03``, or ``≤ 0.01`` at the floor."""
        return f"{'≤ ' if self.pvalue <= self.floor else ''}{self.pvalue:.2g}"


@dataclass(frozen=True)
class GroupFindings:
    """What was found by group.

    Attributes
    ----------
    rows : tuple of GroupRow
        In the order of the groups' names.
    worst : str
        The group whose cumulative curve strays most, in standard deviations.
    largest_gap : str
        The group with the largest gap between frequency and mean score, among those with rows enough.
    test : CalibrationTest
        That all groups share one line of log-odds: a score test.
    confidence : float
        Of all intervals of gaps together: each has 1 - (1 - confidence)/G.
    """

    rows: tuple[GroupRow, ...]
    worst: str
    largest_gap: str
    test: CalibrationTest
    confidence: float

    @property
    def counted(self) -> str:
        """What the rows of groups are called: of weights that leave fractions, as many as would tell the same."""
        return "rows" if all(float(row.rows).is_integer() for row in self.rows) else "effective rows"

    @property
    def verdict(self) -> str:
        """What it means, in words."""
        if not self.test.rejects(1 - self.confidence):
            return f"No evidence that groups differ ({self.test.p})."
        worst = next(row for row in self.rows if row.name == self.worst)
        low, high = (worst.low, worst.high) if worst.gap > 0 else (-worst.high, -worst.low)
        return (
            f"Groups differ ({self.test.p}): {worst.name} strays most, by {worst.strayed:.1f} standard deviations; its "
            f"event happens {abs(worst.gap):.3f} {'more' if worst.gap > 0 else 'less'} often than was said "
            f"(interval {low:.3f} to {high:.3f})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, strings and numbers."""
        return {**asdict(self), "counted": self.counted, "verdict": self.verdict}


def natural(name: str) -> tuple[float, list[tuple[int, str]]]:
    """Return the key by which names are sorted as people do: 2 before 10, and ward 2 before ward 10.

    Examples
    --------
    >>> sorted(["10", "ward 10", "2", "ward 2", "-1"], key=natural)
    ['-1', '2', '10', 'ward 2', 'ward 10']
    """
    try:
        return float(name), []
    except ValueError:
        parts = re.findall(r"([0-9]*)([^0-9]*)", name)
        return np.inf, [(int(digits or 0), words) for digits, words in parts]


def group_findings(
    pairs: Pairs, places: Integers, names: list[str], confidence: float, resamples: int, rng: Any
) -> GroupFindings:
    """Judge each group of pairs with an interval that knows how many groups were looked at."""
    each = [pairs.take(places == place).counted() for place in range(len(names))]
    level = 1 - (1 - confidence) / len(names)
    rows = tuple(
        _row(name, part, scale, level, len(names), resamples, rng)
        for name, part, scale in zip(names, each, _scales(pairs, each), strict=True)
    )
    judged = [row for row in rows if not row.small] or list(rows)
    worst = max(judged, key=lambda row: row.strayed).name
    gap = max(judged, key=lambda row: abs(row.gap)).name
    return GroupFindings(rows, worst, gap, groups_differ(pairs, places, len(names), resamples, rng), confidence)


def _scales(pairs: Pairs, each: list[Pairs]) -> list[float]:
    """Return the standard deviation of each group's mean gap if scores are true.

    Of clusters, rows depend as the residuals of all groups together tell: a group without events shows no dependence.
    """
    if pairs.clusters is None:
        return [deviation(part) for part in each]
    whole = clusters_of(pairs.counted())
    share, parts = float(whole.share_of(whole.residuals)), [clusters_of(part) for part in each]
    ones = [np.ones((part.n, 1)) for part in each]
    spread = [known.alone(one) + share * known.together(one) for known, one in zip(parts, ones, strict=True)]
    return [float(np.sqrt(max(0.0, found[0, 0]))) / part.total for found, part in zip(spread, each, strict=True)]


def _row(name: str, pairs: Pairs, scale: float, level: float, count: int, resamples: int, rng: Any) -> GroupRow:
    w, residual = pairs.weight_array, pairs.outcomes - pairs.scores
    gap = float(np.average(residual, weights=w))
    error, _ = standard_error(residual, pairs)
    spread = float((w * pairs.scores * (1 - pairs.scores)).sum() * pairs.rows / pairs.total)
    strayed = ecce(pairs) / scale if scale > 0 else 0.0
    pvalue, floor = (min(1.0, count * found) for found in cumulative_pvalue(pairs, "ecce", resamples, rng))
    units = pairs.rows if pairs.clusters is None else len(np.unique(pairs.clusters))
    unseen = 1 - (0.5 - level / 2) ** (1 / units)  # what may happen in no row
    reach = max(unseen, deviations_of(level) * max(error if np.isfinite(error) else 1.0, scale))
    seen = (deviations_of(level) + 0.84) * scale  # 0.84: four samples of five
    small = spread < SMALL and pvalue > count * (1 - level)
    ends = max(-1.0, gap - reach), min(1.0, gap + reach)
    return GroupRow(name, pairs.rows, gap, *ends, strayed, pvalue, seen, small, floor)


def groups_differ(
    pairs: Pairs, places: Integers, count: int, resamples: int = 1000, rng: Any = None
) -> CalibrationTest:
    """Test that all groups share one line: the score test of an intercept and a slope of their own.

    Under the line that all rows give, the residuals of each group, and their product with the log-odds, less what the
    common line explains, are χ² with 2(G - 1) degrees of freedom. Groups too small for a slope have an intercept only.
    Where rows come in clusters, outcomes are drawn from the common line instead (see `clustered`).
    """
    kept = (pairs.scores > 0) & (pairs.scores < 1) & (pairs.weight_array > 0)
    part, group = pairs.take(kept), places[kept]
    if count < 2 or not part.n:
        return CalibrationTest(0.0, 1.0, "score", "all groups share one line", part.n)
    line, x = line_of(part), logit(part.scores)
    scale = part.rows / part.total
    w = part.weight_array * scale
    design = np.column_stack([np.ones_like(x), x - x.mean()])
    mean = expit(line.fit.theta[0] + line.fit.theta[1] * x) if not line.constant else part.scores
    v = w * mean * (1 - mean)
    enough = np.bincount(group, v, count) >= 4 * SMALL
    columns = [(group == g) * 1.0 for g in range(count)]
    columns += [(group == g) * design[:, 1] for g in range(count) if enough[g]]
    extra = np.column_stack(columns)
    residual = w * (part.outcomes - mean)
    weighted = (design * v[:, None]).T
    projected = extra - design @ np.linalg.lstsq(weighted @ design, weighted @ extra, rcond=None)[0]
    words = "all groups share one line of log-odds"
    if part.clusters is not None:
        drawing = np.random.default_rng(0) if rng is None else rng
        statistic, pvalue, floor = clustered_score(replace(part, scores=mean), projected, resamples, drawing)
        return CalibrationTest(statistic, pvalue, "score", words, part.n, floor)
    own = v * (1.0 if part.counts else scale * part.unit)  # fractional weights are fixed factors of a row
    score, spread = projected.T @ residual, (projected * own[:, None]).T @ projected
    values, vectors = np.linalg.eigh(spread)
    real = values > 1e-8 * max(float(values.max()), 1e-300)
    statistic = float((((vectors[:, real].T @ score) ** 2) / values[real]).sum())
    pvalue = float(chdtrc(int(real.sum()), statistic)) if real.any() else 1.0
    return CalibrationTest(statistic, pvalue, "score", words, part.n)
