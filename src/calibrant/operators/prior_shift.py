"""The map under other class frequencies."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..arrays import below_ties, log_softmax, softmax, weighted_quantiles
from ..calibrator import Calibrator
from ..declared import attribute, declared, parameter
from ..errors import InvalidInput
from ..fits.judge import mean_losses
from ..fits.report import FitReport
from ..formulas import Term
from ..formulas import log_softmax as log_softmax_formula
from ..invariants import ANY, Fitted, Values
from ..parameters import AMOUNT, Instance, Number
from ..passes import Block, Data
from ..traits import Traits
from ..types import Array, Floats, Self
from ..validation import as_array, as_weights
from ._label_shift import bins_of, find_frequencies, label_shift_test

_ROWS = 20_000  # that tell thirds of the confidences well enough
_RIDGE = 1e-3  # on the biases, in nats: keeps those of classes without rows finite
_THIRDS = np.array([1 / 3, 2 / 3])


@declared
class PriorShift(Calibrator):
    """Corrects for class frequencies that differ from those of the calibration rows: p'ₖ ∝ pₖ qₖ/πₖ.

    The map is fitted, then a temperature and a bias for each class (bias-corrected temperature scaling; Alexandari,
    Kundaje & Shrikumar 2020), so that its mean prediction is the label frequency, as the correction needs it.
    `adapt` then takes the new frequencies q, or finds them from the scores of rows without labels: the maximum of the
    posterior under a Dirichlet(1 + c K π) prior, with a certificate that it is the maximum.

    Right where labels alone have shifted: the scores of a class are distributed as they were. That is tested, and
    refused where it does not hold.

    Parameters
    ----------
    map : Calibrator
        Cloned, not changed.
    pseudo_count : float
        c of the prior: rows a class, spread as the calibration rows are. 0 is maximum likelihood, which may set a class
        to exactly zero.
    level : float
        `adapt` refuses rows whose p-value under label shift is below it.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    map_ : Calibrator
    slope_, bias_ : float, array of shape (K,)
        Of the correction of the map's logits.
    source_priors_ : array of shape (K,)
        π: mean prediction on the calibration rows.
    priors_ : array of shape (K,)
        q in use; π until `adapt` is called.
    priors_interval_ : array of shape (K, 2)
        95 % intervals of q from the rows that `adapt` saw; q itself where it was given.
    shift_test_ : dict
        Statistic, degrees of freedom and p-value of the last test; empty where there was none.
    certificate_ : float
        How far the likelihood can at most be below its maximum, in nats a row.
    table_, edges_ : arrays
        Calibration rows by bin (top label and third of its confidence) and label, for the test.
    """

    _identifier = "prior-shift"
    map: Calibrator = parameter(Instance((Calibrator,), 'a calibrator, such as make("platt")'))
    pseudo_count: float = parameter(AMOUNT, default=1.0)
    level: float = parameter(Number(0, 1), default=1e-3)
    map_: Calibrator = attribute(Fitted(), counted=True)
    slope_: float = attribute(AMOUNT, counted=True)
    bias_: Array = attribute(Values("K"), counted=True)
    source_priors_: Array = attribute(Values("K", low=1e-300, high=1, total=1))
    priors_: Array = attribute(Values("K", low=0, high=1, total=1), counted=True)
    priors_interval_: Array = attribute(Values("K", 2, low=0, high=1))
    shift_test_: dict[str, float] = attribute(ANY)
    certificate_: float = attribute(Number())
    table_: Array = attribute(Values("bins", "K", low=0))
    edges_: Array = attribute(Values("cells", "thirds"))

    @property
    def traits(self) -> Traits:
        """Those of the map; classes may overtake one another."""
        inner = self.map.traits
        return Traits(inner.shape, "nothing", inner.calibrates, f"{inner.parameters} + 2K", inner.needs, inner.sees)

    def adapt(self, scores: Any = None, priors: Any = None, *, sample_weight: Any = None, check: bool = True) -> Self:
        """Move to other class frequencies: given ones, or those of rows without labels.

        Parameters
        ----------
        scores : array-like of shape (n, K), optional
            Of rows without labels.
        priors : array-like of shape (K,), optional
            The class frequencies, where they are known.
        sample_weight : array-like of shape (n,), optional
        check : bool
            Refuse rows that label shift alone cannot explain.
        """
        if (scores is None) == (priors is None):
            raise InvalidInput(
                "adapt takes scores without labels, or priors", seen="both" if priors is not None else "neither"
            )
        if scores is None:
            self.priors_ = _given_priors(priors, len(self.source_priors_))
            self.priors_interval_ = np.stack([self.priors_, self.priors_], axis=1)
            self.shift_test_, self.certificate_ = {}, 0.0
            return self
        p = softmax(self._corrected(self._scores_to_map(scores).logits).astype(np.float64))
        given = as_weights(sample_weight, len(p))
        weights = np.ones(len(p)) if given is None else given
        found = find_frequencies(p, self.source_priors_, weights, float(self.pseudo_count))
        test = label_shift_test(self.table_, found.values, bins_of(p, self.edges_), weights)
        if check and test.p_value < self.level:
            raise InvalidInput(
                "the scores have shifted in another way than by class frequencies, so they cannot be corrected by them",
                seen=f"χ² {test.statistic:.1f} on {test.degrees} degrees of freedom, p = {test.p_value:.2g}",
                allowed=f"p of at least {self.level:g}",
                hint="calibrate on labelled rows of the new kind, or pass check=False",
            )
        self.priors_, self.priors_interval_ = found.values, found.interval
        self.certificate_ = found.certificate
        self.shift_test_ = {
            "statistic": test.statistic,
            "degrees": float(test.degrees),
            "p_value": test.p_value,
        }
        return self

    def _fit(self, data: Data) -> FitReport:
        self.map_ = self.map.unfitted()
        report = self.map_.fit_data(data)
        answered = data.mapped(self.map_)
        self.slope_, self.bias_, steps, arrived = _bias_corrected(answered)
        correct = partial(corrected, slope=self.slope_, bias=self.bias_)
        total, weight = answered.reduce(partial(mean_answer, correct=correct))
        self.source_priors_ = total / weight
        some = answered.pilot(_ROWS).rows()
        self.edges_ = _edges(softmax(correct(some.logits.astype(np.float64))), some.weight_array)
        self.table_ = answered.reduce(partial(bin_table, correct=correct, edges=self.edges_))
        self.priors_ = self.source_priors_.copy()
        self.priors_interval_ = np.stack([self.priors_, self.priors_], axis=1)
        self.shift_test_, self.certificate_ = {}, 0.0
        losses = mean_losses(data, softmax, self._map)
        return FitReport(
            report.iterations + steps, report.converged and arrived, "nll", *losses, messages=report.messages
        )

    def _corrected(self, logits: Floats) -> Floats:
        return corrected(self.map_.link_logits(logits), self.slope_, self.bias_)

    def _map(self, logits: Floats) -> Floats:
        link = self.map_.link_logits(logits).astype(np.float64)
        return softmax(corrected(link, self.slope_, self.bias_) + self._shift()).astype(logits.dtype)

    def _formula(self, z: Term) -> Term:
        logs = log_softmax_formula(self.map_.link_formula(z))
        return (logs * self.slope_ + self.bias_ + self._shift()).softmax()

    def _shift(self) -> Array:
        """What other class frequencies add to a log-probability."""
        with np.errstate(divide="ignore"):
            return np.log(self.priors_) - np.log(self.source_priors_)


def corrected(logits: Floats, slope: float, bias: Array) -> Floats:
    """Return β log p + b."""
    return log_softmax(logits) * logits.dtype.type(slope) + bias.astype(logits.dtype)


def bias_sums(block: Block, slope: float, bias: Array) -> tuple[float, float, Array]:
    """One pass: the summed log-loss of softmax(β log p + b), and its gradient in β and b."""
    z = log_softmax(block.logits).astype(np.float64)
    z = np.maximum(z, -_FAR)
    p, w, rows = softmax(slope * z + bias), block.weight_array, np.arange(block.n)
    loss = -float(w @ np.log(np.maximum(p[rows, block.labels], 1e-300)))
    p[rows, block.labels] -= 1.0
    p *= w[:, None]
    return loss, float((p * z).sum()), p.sum(axis=0)


_FAR = 700.0  # nats: what is further off is as good as impossible, and must not be infinite times zero


def mean_answer(block: Block, correct: Any) -> tuple[Array, float]:
    """One pass: the summed probabilities of each class, and the weight of the rows."""
    return block.weight_array @ softmax(correct(block.logits.astype(np.float64))), block.total_weight


def bin_table(block: Block, correct: Any, edges: Array) -> Array:
    """One pass: the weight of the rows by bin and label."""
    bins = bins_of(softmax(correct(block.logits.astype(np.float64))), edges)
    count = edges.shape[0] * (edges.shape[1] + 1)
    found = np.bincount(bins * block.n_classes + block.labels, block.weight_array, count * block.n_classes)
    return found.reshape(count, block.n_classes).astype(np.float64)


def _edges(p: Floats, weights: Array) -> Array:
    """Return the thirds of the confidences of each top label: (K, 2)."""
    order = p.max(axis=1).argsort()
    top, confidence, w = p[order].argmax(axis=1), p[order].max(axis=1), weights[order]
    edges = np.tile(weighted_quantiles(confidence, w, _THIRDS), (p.shape[1], 1))
    for label in range(p.shape[1]):
        own = top == label
        if w[own].sum() >= 3:
            edges[label] = weighted_quantiles(confidence[own], w[own], _THIRDS)
    return below_ties(edges)


def _bias_corrected(data: Data) -> tuple[float, Array, int, bool]:
    """Return the slope and the biases of least log-loss, the passes, and whether the solver arrived."""
    total = data.total_weight

    def objective(theta: Array) -> tuple[float, Array]:
        loss, steep, pull = data.reduce(partial(bias_sums, slope=float(theta[0]), bias=theta[1:]))
        bias = theta[1:]
        value = float(loss + 0.5 * _RIDGE * (bias @ bias)) / total
        return value, np.append(steep, pull + _RIDGE * bias) / total

    start = np.append(1.0, np.zeros(data.n_classes))
    bounds = [(1e-3, 1e3), *[(None, None)] * data.n_classes]
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-12, "gtol": 1e-7}
    )
    return float(found.x[0]), found.x[1:], int(found.nfev), bool(found.success)


def _given_priors(priors: Any, k: int) -> Array:
    values = np.asarray(as_array(priors, "priors")[0], dtype=np.float64)
    good = values.shape == (k,) and np.isfinite(values).all() and (values >= 0).all() and abs(values.sum() - 1) < 1e-6
    if not good:
        raise InvalidInput(
            "priors must be a frequency for each class that sum to one", seen=repr(values.tolist())[:120]
        )
    return values / values.sum()
