"""One kernel a class: when it is tried, where it stands, and when it is clearly better."""

from types import SimpleNamespace

import numpy as np
import pytest

from calibrant.maps.class_means import are_few, around_means, class_means, clearly_lower
from calibrant.passes import Block


def trials(*losses):
    return [SimpleNamespace(losses=lambda bandwidth, one=one: np.asarray(one) * bandwidth) for one in losses]


@pytest.mark.parametrize(("rows", "few"), [(17, False), (18, True), (150, True), (151, False)])
def test_means_are_tried_from_six_to_fifty_rows_a_class(rows, few):
    """Of the classes that were seen: three of four."""
    assert are_few(Block(np.zeros((rows, 2)), np.arange(rows) % 3, None, 4)) is few


def test_each_class_with_rows_has_its_weighted_mean(rng):
    x, labels, w = rng.normal(size=(9, 2)), np.array([0, 2, 2, 0, 0, 3, 3, 3, 3]), rng.choice([0.5, 1.0, 4.0], 9)
    means, seen, totals = class_means(x, labels, w, 5)
    assert seen.tolist() == [0, 2, 3]
    for mean, k, total in zip(means, seen, totals, strict=True):
        np.testing.assert_allclose(mean, np.average(x[labels == k], axis=0, weights=w[labels == k]))
        assert total == pytest.approx(w[labels == k].sum())
    support = around_means(x, Block(np.zeros((9, 2)), labels, w, 5))
    np.testing.assert_allclose(support.points + support.centre, means)
    np.testing.assert_allclose(support.prior, np.bincount(labels, w, 5) / w.sum())


def test_the_same_losses_are_not_clearly_lower():
    same = trials([1.0, 2.0], [0.5])
    assert clearly_lower(same, 1.0, same, 1.0) is False
    assert clearly_lower(trials([1.0, 2.0]), 1.0, trials([1.0, 2.0, 1.5]), 1.0) is False
    assert clearly_lower(trials([1.0, 1.0]), 1.0, trials([1.0, 1.0, 1.0]), 1.0) is False


@pytest.mark.parametrize("bandwidth", [1.0, 0.5])
def test_lower_by_two_standard_errors_is_clear(bandwidth):
    """Differences row by row where the rows are the same: ±1 about a mean of 2/√n is not more than two errors."""
    apart = np.tile([1.0, -1.0], 8)
    own = np.linspace(0.2, 3.0, 16)
    for mean, clear in ((0.49, False), (0.51, True)):
        theirs = trials(own[:5] + apart[:5] + mean, own[5:] + apart[5:] + mean)
        assert clearly_lower(trials(own[:5], own[5:]), bandwidth, theirs, bandwidth) is clear
        assert clearly_lower(theirs, bandwidth, trials(own), bandwidth) is False
    # Of other rows the errors of both count: √(1/16 + 1/64) = 0.2795.
    many = np.tile([1.0, -1.0], 32)
    for mean, clear in ((0.558, False), (0.560, True)):
        assert clearly_lower(trials(many), bandwidth, trials(apart + mean), bandwidth) is clear
        assert clearly_lower(trials(apart), bandwidth, trials(many + mean), bandwidth) is clear
