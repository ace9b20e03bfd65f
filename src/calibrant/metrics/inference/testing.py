"""Is the model miscalibrated, or is it chance? Tests of the hypothesis that the probabilities are true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

from ...cells.pairs import Cells, Pairs, is_whole
from ...errors import InvalidInput
from ..estimators.kernel import skce_of
from ..estimators.norms import Norm, check_norm
from ..views.forecasts import Forecasts, read, select
from .cumulative_test import null_walks
from .intervals import check_resamples
from .kernel_test import skce_pvalue
from .replicates import Replicates, prefix

__all__ = ["CalibrationTest", "calibration_test"]

Floats = NDArray[np.float64]
BLOCK = 2_000_000
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
    classes: Any = None,
) -> CalibrationTest:
    """Test whether probabilities are calibrated.

    Parameters
    ----------
    method : {"sweep", "spiegelhalter", "skce"}
        "sweep": the sweep error (paper 003, §5.4; with two bins at least, so that a falling curve is seen too) against
        its distribution when outcomes are drawn again from the scores themselves (consistency resampling, Bröcker and
        Smith 2007); p = (1 + #{larger or equal})/(1 + resamples).
        "spiegelhalter": z = Σ(y - s)(1 - 2s) / √Σ(1 - 2s)² s(1 - s), two-sided (1986); sees over- and
        under-confidence, blind to what cancels. "skce": the kernel test of the whole vector (Widmann et al. 2019),
        by consistency resampling too.
    view : "top_label" or a class
        What "sweep" and "spiegelhalter" test; one event's probabilities are taken as they are.
    norm : {1, 2, "max"}
        Of the sweep statistic.
    sample_weight : array-like of shape (n,), optional
        Whole numbers say how often a row occurs. Fractional weights are fixed factors of
        the rows ("skce" refuses them).

    Examples
    --------
    >>> from calibrant.simulation import scenarios
    >>> y, p = scenarios["resnet110_c10"].sample(500, random_state=0)
    >>> calibration_test(y, p).pvalue < 0.05
    True
    """
    tests = {"sweep": _sweep, "spiegelhalter": _spiegelhalter, "skce": _skce}
    if method not in tests:
        raise InvalidInput("no such test", seen=repr(method), allowed=", ".join(tests))
    check_norm(norm)
    check_resamples(resamples, 19)
    forecasts = read(y_true, y_prob, sample_weight, classes=classes)
    return tests[method](forecasts, view, norm, resamples, np.random.default_rng(random_state))


def _words(forecasts: Forecasts, view: Any) -> str:
    if forecasts.is_event:
        return "the event's probabilities are true"
    named = {"top_label": "the top label's probabilities", "pooled": "the probabilities of all classes"}
    words = named[view] if isinstance(view, str) and view in named else f"the probabilities of {view!r}"
    return f"{words} are true"


def _sweep(forecasts: Forecasts, view: Any, norm: Norm, resamples: int, rng: np.random.Generator) -> CalibrationTest:
    return sweep_test(select(forecasts, view), _words(forecasts, view), norm, resamples, rng)


def sweep_test(pairs: Pairs, words: str, norm: Norm, resamples: int, rng: np.random.Generator) -> CalibrationTest:
    """Compare the sweep error with those of outcomes drawn from the scores themselves."""
    pairs = pairs.counted()
    cells = pairs.cells
    seen = _statistic(_replicates(cells, cells.outcomes[None, :]), norm)[0]
    drawn = _outcomes(cells, pairs, resamples, rng)
    null = np.concatenate([_statistic(_replicates(cells, outcomes), norm) for outcomes in drawn])
    pvalue = (1 + int((null >= seen * (1 - 1e-12)).sum())) / (1 + resamples)
    rows = pairs.n if pairs.draws is None else round(pairs.rows)
    return CalibrationTest(float(seen), pvalue, "sweep", words, rows, 1 / (1 + resamples))


def _statistic(many: Replicates, norm: Norm) -> Floats:
    swept, chosen = many.sweep("equal_mass", norm)
    return np.where(chosen > 1, swept, many.binned(2, "equal_mass", norm))


def _replicates(cells: Cells, outcomes: Floats) -> Replicates:
    """Replicates that share scores and weights."""
    mass = prefix(cells.weights[None, :])
    mass = mass.astype(np.int64) if is_whole(cells.weights) else mass
    return Replicates(cells.scores[None, :], mass, prefix(outcomes), prefix(cells.weights * cells.scores - outcomes))


def _outcomes(cells: Cells, pairs: Pairs, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Yield blocks of outcomes under calibration, shape (r, cells): a whole weight is a number of rows.

    Of clusters, whose rows may depend on each other, residuals as they were seen get a common random sign.
    """
    if pairs.clusters is not None or (pairs.draws is not None and not is_whole(pairs.weight_array)):
        for walks in null_walks(pairs, resamples, rng):
            yield np.diff(walks, axis=1) * pairs.total + cells.weights * cells.scores
        return
    m, counts = len(cells.scores), cells.weights.astype(np.int64)
    tied = np.flatnonzero(counts > 1)
    order = np.argsort(pairs.scores, kind="stable")
    first = np.searchsorted(pairs.scores[order], cells.scores)
    for size in np.diff(np.r_[np.arange(0, resamples, max(1, BLOCK // pairs.n)), resamples]):
        if is_whole(pairs.weight_array):
            drawn = (rng.random((size, m), dtype=np.float32) < cells.scores).astype(np.float64)
            drawn[:, tied] = rng.binomial(counts[tied], cells.scores[tied], (size, len(tied)))
            yield drawn
        else:
            happened = rng.random((size, len(order)), dtype=np.float32) < pairs.scores[order]
            yield np.add.reduceat(happened * pairs.weight_array[order], first, axis=1)


def _spiegelhalter(
    forecasts: Forecasts, view: Any, norm: Norm, resamples: int, rng: np.random.Generator
) -> CalibrationTest:
    pairs = select(forecasts, view).counted()
    z = spiegelhalter_z(pairs)
    return CalibrationTest(z, float(erfc(abs(z) / np.sqrt(2))), "spiegelhalter", _words(forecasts, view), pairs.n)


def spiegelhalter_z(pairs: Pairs) -> float:
    """Return Spiegelhalter's z; 0 where every score is 0, ½ or 1 and agrees with its outcome.

    A whole weight is a number of rows and enters the variance once; fractional weights are fixed factors of a row.
    """
    s, tilt, w = pairs.scores, 1 - 2 * pairs.scores, pairs.weight_array
    spread = float(((w if is_whole(w) else w**2) * tilt**2 * s * (1 - s)).sum())
    excess = float((w * (pairs.outcomes - s) * tilt).sum())
    if spread == 0:
        return 0.0 if abs(excess) < 1e-12 else float(np.copysign(np.inf, excess))
    return excess / float(np.sqrt(spread))


def _skce(forecasts: Forecasts, view: Any, norm: Norm, resamples: int, rng: np.random.Generator) -> CalibrationTest:
    """Kernel test: the unbiased error against those of labels that are drawn from the probabilities themselves."""
    weights = np.ones(forecasts.n) if forecasts.weights is None else forecasts.weights
    if not is_whole(weights):
        raise InvalidInput("sample_weight must be whole numbers for the kernel test", hint="it looks at pairs of rows")
    rows = np.repeat(np.arange(forecasts.n), weights.astype(np.int64))
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
