"""The contract's checks are worth something only if they catch maps that break it."""

import numpy as np
import pytest

from calibrant import Identity, TemperatureScaling
from calibrant.arrays import softmax
from calibrant.calibrator import Calibrator
from calibrant.fits.report import FitReport
from calibrant.parameters import Number
from calibrant.testing import ContractBroken, calibrator_checks, check_calibrator
from calibrant.traits import Traits


class Own(Calibrator):
    """A user's own map that keeps the contract: p = (1 - a) softmax(z) + a/K, with a the share of wrong top labels."""

    _traits = Traits("scaling", "ranking", "top label", "1")

    def __init__(self, *, inputs="logits", classes=None):
        self.inputs = inputs
        self.classes = classes

    def _fit_rows(self, sample):
        wrong = sample.logits.max(axis=1) > sample.logits[np.arange(sample.n), sample.labels]
        self.share_ = float(np.average(wrong, weights=sample.weights))
        return FitReport(0, True, "nll", 1.0, 1.0, 1.0, 1.0, 0.0)

    def _map(self, logits):
        share = logits.dtype.type(self.share_)
        return (1 - share) * softmax(logits) + share / logits.dtype.type(logits.shape[1])


class NotFinite(Own):
    def _map(self, logits):
        return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


class NotNormal(Own):
    def _map(self, logits):
        return 0.9 * softmax(logits)


class ForgetsType(Own):
    def _map(self, logits):
        return super()._map(logits.astype(np.float64))


class BreaksRanking(Own):
    def _map(self, logits):
        return super()._map(logits)[:, ::-1].copy()


class IgnoresWeights(Own):
    def _fit_rows(self, sample):
        wrong = sample.logits.max(axis=1) > sample.logits[np.arange(sample.n), sample.labels]
        self.share_ = float(wrong.mean())
        return FitReport(0, True, "nll", 1.0, 1.0, 1.0, 1.0, 0.0)


class DependsOnOrder(Own):
    def _fit_rows(self, sample):
        report = super()._fit_rows(sample)
        self.share_ = float(0.5 * (1 + np.tanh(sample.logits[0, 0] - sample.logits[0, 1])))
        return report


class DependsOnShift(Own):
    def _fit_rows(self, sample):
        report = super()._fit_rows(sample)
        self.share_ = float(1 / (1 + np.abs(sample.logits).mean()))
        return report


class Random(Own):
    def _fit_rows(self, sample):
        report = super()._fit_rows(sample)
        self.share_ *= np.random.default_rng().uniform(0.5, 1)
        return report


class Remembers(Own):
    def _fit_rows(self, sample):
        report = super()._fit_rows(sample)
        self.share_ = max(self.share_, getattr(self, "most_", 0.0))
        self.most_ = 0.9
        return report


class ConstructorComputes(Own):
    def __init__(self, *, inputs="logits", classes=None):
        super().__init__(inputs=inputs, classes=classes)
        self.ready = True


class HidesState(Own):
    def _fit_rows(self, sample):
        self._secret = 1
        return super()._fit_rows(sample)


class KeepsFunction(Own):
    def _fit_rows(self, sample):
        self.function_ = np.exp
        return super()._fit_rows(sample)


class LeavesNoReport(Own):
    def fit_data(self, data, *, check=False):
        report = super().fit_data(data, check=check)
        del self.fit_report_
        return report


class AcceptsAnything(Own):
    _constraints = {"strength": Number(0, 1)}  # noqa: RUF012

    def __init__(self, strength=0.5, *, inputs="logits", classes=None):
        super().__init__(inputs=inputs, classes=classes)
        self.strength = strength

    def _check_parameters(self):
        pass


class WrongTies(Own):
    def _map(self, logits):
        return np.full_like(logits, 1 / logits.shape[1])

    def predict(self, scores):
        return self.classes_[self.predict_proba(scores).argmax(axis=1)]


class BadArithmeticInSingle(Own):
    def _map(self, logits):
        p = super()._map(logits)
        return p if logits.dtype == np.float64 else softmax((logits * 0.9).astype(np.float32))


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (NotFinite, "answers_distributions"),
        (NotNormal, "answers_distributions"),
        (ForgetsType, "answers_distributions"),
        (BreaksRanking, "keeps_what_it_promises"),
        (IgnoresWeights, "weight_two_is_the_row_twice"),
        (IgnoresWeights, "weights_matter"),
        (DependsOnOrder, "row_order_does_not_matter"),
        (DependsOnShift, "shift_of_logits_does_not_matter"),
        (Random, "same_seed_same_bytes"),
        (Remembers, "same_seed_same_bytes"),
        (ConstructorComputes, "constructor_stores_only"),
        (HidesState, "fit_leaves_a_report"),
        (KeepsFunction, "fit_leaves_a_report"),
        (LeavesNoReport, "fit_leaves_a_report"),
        (AcceptsAnything, "refuses_bad_parameters"),
        (WrongTies, "predicts_by_probability_then_score"),
        (BadArithmeticInSingle, "float32_agrees_with_float64"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_map_is_caught(broken, check):
    checks = dict(calibrator_checks(broken()))
    with pytest.raises((AssertionError, AttributeError, ValueError)):
        checks[check]()


def test_a_users_own_map_passes():
    assert len(check_calibrator(Own())) >= 25


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_all_failures_are_collected():
    with pytest.raises(ContractBroken, match="NotFinite breaks the contract in") as caught:
        check_calibrator(NotFinite())
    assert {"answers_distributions", "fits_the_worst_scores"} <= set(caught.value.failures)


def test_a_check_does_not_fit_the_map_it_is_given():
    map_ = TemperatureScaling(loss="brier")
    check_calibrator(map_)
    assert vars(map_) == {"loss": "brier", "inputs": "logits", "classes": None, "saturated": "small"}


def test_only_calibrators_can_be_checked():
    with pytest.raises(ValueError, match="must be an instance"):
        check_calibrator(Identity)
