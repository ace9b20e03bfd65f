"""What `check_merging` says of maps and metrics that cannot be merged helps who wrote them."""

import numpy as np
import pytest

from calibrant.arrays import softmax
from calibrant.calibrator import Calibrator
from calibrant.fits.judge import mean_losses
from calibrant.fits.report import FitReport
from calibrant.testing import check_merging
from calibrant.traits import Traits


class Local(Calibrator):
    """Its pass is a function inside another."""

    _traits = Traits("scaling", "nothing", "each class", "K")

    def _fit(self, data):
        self.shift_ = np.log(1.0 + data.reduce(lambda block: block.weight_array @ softmax(block.logits)))
        return FitReport(1, True, "nll", *mean_losses(data, softmax, self._map))

    def _map(self, logits):
        return softmax(logits + self.shift_)


def listed(block):
    """A list: + puts lists one behind the other."""
    return (block.weight_array @ softmax(block.logits)).tolist()


class Listed(Local):
    def _fit(self, data):
        self.shift_ = np.asarray(data.reduce(listed))
        return FitReport(1, True, "nll", *mean_losses(data, softmax, self._map))


class Silent(Local):
    def _fit(self, data):
        self.shift_ = np.zeros(data.n_classes)


@pytest.mark.parametrize(
    ("broken", "error", "words"),
    [
        (Local, AssertionError, "its function must stand at the top of a module"),
        (Listed, AssertionError, "two blocks: the fit fails, and on all rows as one it does not"),
        (Silent, TypeError, "Silent: a fit must return a FitReport, not None"),
    ],
)
def test_a_map_hears_what_is_wrong(broken, error, words):
    with pytest.raises(error, match=words):
        check_merging(broken())


class Mean:
    """A mean log-loss, kept as sums; merging changes it in place and returns nothing."""

    def __init__(self):
        self.count, self.total = 0, 0.0

    def update(self, labels, p):
        self.count += len(labels)
        self.total -= np.log(p[np.arange(len(labels)), labels]).sum()

    def merge(self, other):
        self.count += other.count
        self.total += other.total

    def finalise(self):
        return [self.total / self.count, np.nan]


class Named(Mean):
    def finalise(self):
        return {"nll": 1.0}


def test_a_state_that_is_merged_in_place_passes_and_nan_equals_nan():
    check_merging(Mean)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Named, "a number or an array of numbers, not {'nll'"),
        (object, "no update and no finalise"),
    ],
)
def test_what_is_no_state_hears_what_it_lacks(make, words):
    with pytest.raises(AssertionError, match=words):
        check_merging(make)
