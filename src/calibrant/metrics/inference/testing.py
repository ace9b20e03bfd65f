"""Is the model miscalibrated, or is it chance? Tests of the hypothesis that the probabilities are true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, erfc, log_expit, logit

from ...cells.pairs import Cells, Pairs, is_whole
from ...errors import InvalidInput
from ...parameters import generator, is_one_of
from ...types import Array
from ..estimators.cox import Line, line_of
from ..estimators.cumulative import ecce, ks
from ..estimators.kernel import skce_of
from ..estimators.norms import Norm, check_norm
from ..estimators.two_bin import averaged_two_bin
from ..views.forecasts import Forecasts, read, select
from .clustered import MOST_DRAWN, clustered_score, clusters_of
from .cumulative_test import cumulative_pvalue, drawn_outcomes, drawn_sums, two_bin_pvalue
from .intervals import check_resamples, drawn_pvalue
from .kernel_test import skce_pvalue
from .replicates import Replicates, prefix

FEW_EVENTS = 20.0  # Σs(1-s) below which twice the gain of a line is no χ²: it raised 9 % at 200 rows of a 5 % event
CLEAR = 1e-3  # a p-value by χ² that is far from any level, and beyond what resamples can tell
# The kernel test looks at all pairs of rows.
MOST_KERNEL_ROWS = 2_000


@dataclass(frozen=True)
class CalibrationTest:
    """The outcome of a calibration test.

    Attributes
    ----------
    statistic : float
    pvalue : float
        The probability of a statistic at least this extreme if the probabilities were true.
    method : str
    tested : str
        The hypothesis, in words.
    n : int
        Number of rows.
    floor : float
        The smallest p-value that so many resamples can give: a p-value equal to it is an upper bound. 0 without any.
    """

    statistic: float
    pvalue: float
    method: str
    tested: str
    n: int
    floor: float = 0.0

    @property
    def p(self) -> str:
        """The p-value in words: ``p = 0.03``, or ``p ≤ 0.001`` where the resamples can tell no smaller one."""
        return f"p {'≤' if self.pvalue <= self.floor else '='} {self.pvalue:.2g}"

    def rejects(self, level: float = 0.05) -> bool:
        """Tell whether the hypothesis is refused at a level of false alarms."""
        return self.pvalue <= level

    def __str__(self) -> str:
        return f"tested that {self.tested}: {self.method} = {self.statistic:.4g}, {self.p} (n = {self.n:,})"


def calibration_test(
    y_true: Any,
    y_prob: Any,
    *,
    method: str = "sweep",
    view: Any = "top_label",
    norm: Norm = 2,
    resamples: int = 1000,
    random_state: int = 0,
    sample_weight: Any = None,
    clusters: Any = None,
    classes: Any = None,
) -> CalibrationTest:
    """Test whether probabilities are calibrated.

    Parameters
    ----------
    method : {"sweep", "ecce", "ks", "two_bin", "cox", "spiegelhalter", "skce"}
        "sweep": the sweep error (paper 003, §5.4; with two bins at least, so that a falling curve is seen too) against
        its distribution when outcomes are drawn again from the scores themselves (consistency resampling, Bröcker and
        Smith 2007); p = (1 + #{larger} + #{equal}/2)/(1 + resamples).
        "ecce" and "ks": range and largest modulus of the cumulative curve, which is Brownian motion if scores are true
        (Arrieta-Ibarra et al. 2022); by drawn outcomes below some 300 distinct scores. "two_bin": the averaged
        two-bin error by drawn outcomes. "cox": that intercept and slope of Cox's line are 0 and 1, by the likelihood
        ratio, or Rao's score of drawn outcomes where events are few. "spiegelhalter":
        z = Σ(y - s)(1 - 2s) / √Σ(1 - 2s)² s(1 - s), two-sided (1986); sees over- and under-confidence, blind to what
        cancels; by drawn outcomes where events are few. "skce": the kernel test of the whole vector (Widmann et al.
        2019), by consistency resampling too.
    view : "top_label" or a class
        What all but "skce" test; one event's probabilities are taken as they are.
    norm : {1, 2, "max"}
        Of the sweep and two-bin statistics.
    sample_weight : array-like of shape (n,), optional
        Whole numbers say how often a row occurs. Fractional weights are fixed factors of
        the rows ("skce" refuses them).
    clusters : array-like of shape (n,), optional
        Which rows belong together and need not be independent ("skce" refuses them).

    Examples
    --------
    >>> from calibrant.simulation import scenarios
    >>> y, p = scenarios["resnet110_c10"].sample(500, random_state=0)
    >>> calibration_test(y, p).pvalue < 0.05
    True
    """
    if not is_one_of(method, (*_TESTS, "skce")):
        raise InvalidInput("no such test", seen=repr(method), allowed=", ".join((*_TESTS, "skce")))
    check_norm(norm)
    check_resamples(resamples, 19)
    forecasts, rng = read(y_true, y_prob, sample_weight, classes=classes), generator(random_state)
    if method == "skce":
        if clusters is not None:
            raise InvalidInput("the kernel test takes no clusters", allowed=", ".join(_TESTS))
        return _skce(forecasts, resamples, rng)
    pairs = select(forecasts.clustered(clusters), view).counted()
    return _TESTS[method](pairs, _words(forecasts, view), norm, resamples, rng)


def ecce_test(y_true: Any, y_prob: Any, **options: Any) -> CalibrationTest:
    """Test by the range of the cumulative curve; options are those of `calibration_test`."""
    return calibration_test(y_true, y_prob, **{"method": "ecce", **options})


def averaged_two_bin_test(y_true: Any, y_prob: Any, **options: Any) -> CalibrationTest:
    """Test by the averaged two-bin error; options are those of `calibration_test`."""
    return calibration_test(y_true, y_prob, **{"method": "two_bin", **options})


def _words(forecasts: Forecasts, view: Any) -> str:
    if forecasts.is_event:
        return "the event's probabilities are true"
    named = {"top_label": "the top label's probabilities", "pooled": "the probabilities of all classes"}
    words = named[view] if isinstance(view, str) and view in named else f"the probabilities of {view!r}"
    return f"{words} are true"


def sweep_test(pairs: Pairs, words: str, norm: Norm, resamples: int, rng: np.random.Generator) -> CalibrationTest:
    """Compare the sweep error with those of outcomes drawn from the scores themselves."""
    pairs = pairs.counted()
    cells = pairs.cells
    seen = _statistic(_replicates(cells, cells.outcomes[None, :]), norm)[0]
    drawn = drawn_outcomes(pairs, resamples, rng)
    null = np.concatenate([_statistic(_replicates(cells, outcomes), norm) for outcomes in drawn])
    pvalue = drawn_pvalue(float(seen), null)
    rows = pairs.n if pairs.draws is None else round(pairs.rows)
    return CalibrationTest(float(seen), pvalue, "sweep", words, rows, 1 / (1 + resamples))


def _statistic(many: Replicates, norm: Norm) -> Array:
    swept, chosen = many.sweep("equal_mass", norm)
    return np.where(chosen > 1, swept, many.binned(2, "equal_mass", norm))


def _replicates(cells: Cells, outcomes: Array) -> Replicates:
    """Replicates that share scores and weights."""
    mass = prefix(cells.weights[None, :])
    mass = mass.astype(np.int64) if is_whole(cells.weights) else mass
    return Replicates(cells.scores[None, :], mass, prefix(outcomes), prefix(cells.weights * cells.scores - outcomes))


def _cumulative(statistic: str) -> Test:
    def test(pairs: Pairs, words: str, norm: Norm, resamples: int, rng: np.random.Generator) -> CalibrationTest:
        pvalue, floor = cumulative_pvalue(pairs, statistic, resamples, rng)
        seen = ecce(pairs) if statistic == "ecce" else ks(pairs)
        return CalibrationTest(seen, pvalue, statistic, words, pairs.n, floor)

    return test


def _two_bin(pairs: Pairs, words: str, norm: Norm, resamples: int, rng: np.random.Generator) -> CalibrationTest:
    pvalue = two_bin_pvalue(pairs, norm, resamples, rng)
    return CalibrationTest(averaged_two_bin(pairs, norm=norm), pvalue, "two_bin", words, pairs.n, 1 / (1 + resamples))


def _gained(line: Line) -> float:
    """Return twice what the line gains in log-likelihood over the identity."""
    z = line.x
    identity = float(line.outcomes @ log_expit(z) + (line.weights - line.outcomes) @ log_expit(-z))
    return max(0.0, 2 * (line.fit.likelihood - identity))


def _cox(pairs: Pairs, words: str, norm: Norm, resamples: int, rng: np.random.Generator) -> CalibrationTest:
    """Twice the gain in log-likelihood of the line over the identity, χ² of two.

    Where Σs(1-s) < 20 that is no χ² yet, unless beyond doubt, and of clusters and fractional weights it never is: there
    Rao's statistic of the same line, uᵀV⁻¹u with u = Σ w(y - s)(1, x), is compared with those of drawn outcomes.
    """
    n, inside = pairs.n, (pairs.scores > 0) & (pairs.scores < 1)
    if not inside.any():
        return CalibrationTest(0.0, 1.0, "cox", words, n)
    pairs = pairs.take(inside)
    x, s, w = logit(pairs.scores), pairs.scores, pairs.weight_array
    freedom = 2 if float(np.ptp(x)) > 0 else 1
    design = np.stack([np.ones_like(x), x - x.mean()] if freedom == 2 else [np.ones_like(x)], axis=1)
    if pairs.clusters is not None:
        statistic, pvalue, floor = clustered_score(pairs, design, resamples, rng)
        return CalibrationTest(statistic, pvalue, "cox", words, n, floor)
    variance = s * (1 - s)
    if pairs.counts:
        statistic = _gained(line_of(pairs))
        pvalue = float(chdtrc(freedom, statistic))
        if float((w * variance).sum()) >= FEW_EVENTS or pvalue < CLEAR:
            return CalibrationTest(statistic, pvalue, "cox", words, n)
    spread = (design * (w * pairs.unit * variance)[:, None]).T @ design
    inverse = np.linalg.pinv(spread, hermitian=True)
    statistic = float(_rao((w * (pairs.outcomes - s) @ design)[None], inverse)[0])
    if n > MOST_DRAWN:
        return CalibrationTest(statistic, float(chdtrc(freedom, statistic)), "cox", words, n)
    pvalue = drawn_pvalue(statistic, _rao(drawn_sums(pairs, design, resamples, rng), inverse))
    return CalibrationTest(statistic, pvalue, "cox", words, n, 1 / (1 + resamples))


def _rao(sums: NDArray[Any], inverse: NDArray[Any]) -> Array:
    return np.einsum("ri,ij,rj->r", sums, inverse, sums)


def _spiegelhalter(pairs: Pairs, words: str, norm: Norm, resamples: int, rng: np.random.Generator) -> CalibrationTest:
    z = spiegelhalter_z(pairs)
    if pairs.clusters is not None:
        tilt = (1 - 2 * pairs.scores)[:, None]
        _, pvalue, floor = clustered_score(pairs, tilt, resamples, rng)
        return CalibrationTest(z, pvalue, "spiegelhalter", words, pairs.n, floor)
    normal = float(erfc(abs(z) / np.sqrt(2)))
    s, w = pairs.scores, pairs.weight_array
    few = pairs.draws is None and float((w * s * (1 - s)).sum()) < FEW_EVENTS and pairs.n <= MOST_DRAWN
    if not few or not np.isfinite(z):
        return CalibrationTest(z, normal, "spiegelhalter", words, pairs.n)
    tilt = 1 - 2 * s
    seen, null = abs(w * (pairs.outcomes - s) @ tilt), np.abs(drawn_sums(pairs, tilt, resamples, rng))
    pvalue = drawn_pvalue(float(seen), null)
    return CalibrationTest(z, pvalue, "spiegelhalter", words, pairs.n, 1 / (1 + resamples))


def spiegelhalter_z(pairs: Pairs) -> float:
    """Return Spiegelhalter's z; 0 where every score is 0, ½ or 1 and agrees with its outcome.

    A whole weight is a number of rows and enters the variance once; fractional weights are fixed factors of a row.
    Rows of a cluster have the covariance that the test gives them.
    """
    s, tilt, w = pairs.scores, 1 - 2 * pairs.scores, pairs.weight_array
    excess = float((w * (pairs.outcomes - s) * tilt).sum())
    if pairs.clusters is None:
        spread = float((w * pairs.unit * tilt**2 * s * (1 - s)).sum())
    else:
        known = clusters_of(pairs)
        spread = float(known.spread(tilt[:, None], known.residuals[None])[0, 0, 0])
    if spread <= 0:
        return 0.0 if abs(excess) < 1e-12 else float(np.copysign(np.inf, excess))
    return excess / float(np.sqrt(spread))


Test = Callable[[Pairs, str, Norm, int, np.random.Generator], CalibrationTest]
_TESTS: dict[str, Test] = {
    "sweep": sweep_test,
    "ecce": _cumulative("ecce"),
    "ks": _cumulative("ks"),
    "two_bin": _two_bin,
    "cox": _cox,
    "spiegelhalter": _spiegelhalter,
}


def _skce(forecasts: Forecasts, resamples: int, rng: np.random.Generator) -> CalibrationTest:
    """Kernel test: the unbiased error against those of labels that are drawn from the probabilities themselves."""
    weights = np.ones(forecasts.n) if forecasts.weights is None else forecasts.weights
    if not is_whole(weights):
        raise InvalidInput("sample_weight must be whole numbers for the kernel test", hint="it looks at pairs of rows")
    rows = np.repeat(forecasts.order, weights.astype(np.int64)[forecasts.order])
    words = "the whole vector's probabilities are true"
    if len(rows) > MOST_KERNEL_ROWS:
        rows = rng.choice(rows, MOST_KERNEL_ROWS, replace=False)
        words += f" (on {MOST_KERNEL_ROWS:,} of the rows, drawn at random)"
    if len(rows) < 2:
        raise InvalidInput("the kernel test needs two rows", seen=str(len(rows)))
    used = read(
        forecasts.labels[rows],
        forecasts.probabilities[rows],
        classes=np.arange(len(forecasts.classes)),
        marginals=True,
    )
    seen = skce_of(used)
    pvalue = skce_pvalue(used, resamples, rng)
    return CalibrationTest(seen, pvalue, "skce", words, len(rows), 1 / (1 + resamples))
