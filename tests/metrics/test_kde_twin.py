"""The kernel density error against sums over rows, place by place."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import metrics
from calibrant.cells.pairs import Pairs
from calibrant.metrics.estimators import kde


def curves(places, points, weights, outcomes, h):
    """Return the density of weights, and that of what happened, with the triweight kernel."""
    u = (places[:, None] - points) / h
    kernel = np.where(np.abs(u) < 1, 35 / 32 * (1 - u**2) ** 3 / h, 0.0)
    return kernel @ weights, kernel @ (weights * outcomes)


def error(share, gap, norm):
    if norm == "max":
        return gap[share > 1e-6 / 8192].max()
    return ((share * gap**norm).sum() / share.sum()) ** (1 / norm)


def rows(seed, n=14):
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 20, n) / 20
    w = (None, rng.integers(1, 4, n) * 1.0, rng.choice([0.5, 1.25], n))[seed % 3]
    return (rng.random(n) < p) * 1, p, w


@pytest.mark.parametrize("norm", [1, 2, "max"])
@pytest.mark.parametrize("bandwidth", [0.07, 0.4, 3.0])
def test_in_probability_space_scores_are_mirrored_at_the_ends(bandwidth, norm):
    """No support is wider than one; beyond that nothing is mirrored twice."""
    for seed in range(3):
        y, p, w = rows(seed)
        own, h = np.ones(len(p)) if w is None else w, min(bandwidth, 1.0)
        places = (np.arange(8192) + 0.5) / 8192
        points = np.r_[-p[p < h], p, 2 - p[p > 1 - h]]
        who = np.r_[np.flatnonzero(p < h), np.arange(len(p)), np.flatnonzero(p > 1 - h)]
        density, happened = curves(places, points, own[who], y[who], h)
        seen = density > 1e-12 * density.max()
        gap = np.where(seen, np.abs(places - np.minimum(happened / np.where(seen, density, 1), 1)), 0)
        found = metrics.ece_kde(y, p, sample_weight=w, bandwidth=bandwidth, norm=norm)
        assert found == pytest.approx(error(np.where(seen, density, 0) / 8192, gap, norm), rel=1e-7)


@pytest.mark.parametrize("norm", [1, 2, "max"])
@pytest.mark.parametrize("bandwidth", [0.3, 2.0])
def test_in_logit_space_certain_scores_are_bins_of_their_own(bandwidth, norm):
    for seed in range(3):
        y, p, w = rows(seed)
        p = np.where(np.arange(14) < 3, [0.0, 1.0] * 7, p)
        own = np.ones(len(p)) if w is None else w
        sure = (p == 0) | (p == 1)
        x = logit(p[~sure])
        low, high = x.min() - bandwidth, x.max() + bandwidth
        count = int(np.clip(32 * (high - low) / bandwidth, 1024, 65536))
        places = low + (np.arange(count) + 0.5) * (high - low) / count
        density, happened = curves(places, x, own[~sure], y[~sure], bandwidth)
        seen = density > 1e-12 * density.max()
        gap = np.where(seen, np.abs(expit(places) - np.minimum(happened / np.where(seen, density, 1), 1)), 0)
        ends = [p[sure] == end for end in np.unique(p[sure])]
        masses = [own[sure][end].sum() for end in ends]
        gaps = [abs(end - np.average(y[sure][at], weights=own[sure][at])) for end, at in zip((0, 1), ends, strict=True)]
        share = np.r_[masses, np.where(seen, density, 0) * (high - low) / count]
        found = metrics.ece_kde(y, p, sample_weight=w, bandwidth=bandwidth, norm=norm, space="logit")
        assert found == pytest.approx(error(share, np.r_[gaps, gap], norm), rel=1e-7)


def test_bandwidths_are_those_of_their_rules():
    """3·σ₁·(2n)^(-1/5) of the positives, or 1.06·σ·n^(-1/5) of all; n as how many rows the weights count."""
    for seed in range(6):
        y, p, w = rows(seed)
        pairs = Pairs(p, y * 1.0, w)
        own = np.ones(len(p)) if w is None else w
        n = own.sum() if (own == np.floor(own)).all() else own.sum() ** 2 / (own**2).sum()

        def deviation(weights, p=p):
            return np.sqrt(np.average((p - np.average(p, weights=weights)) ** 2, weights=weights))

        cells = pairs.cells
        every = 1.06 * deviation(own) * n**-0.2
        assert kde.bandwidth_of("paper", cells.scores, cells) == pytest.approx(every)
        wanted = 3 * deviation(own * y) * (2 * n) ** -0.2 if (own * y).any() else 0
        assert kde.bandwidth_of("reference", cells.scores, cells) == pytest.approx(wanted or every)
        assert kde.bandwidth_of(0.25, cells.scores, cells) == 0.25
    alike = Pairs(np.full(5, 0.5), np.ones(5)).cells
    assert kde.bandwidth_of("reference", alike.scores, alike) == kde.bandwidth_of("paper", alike.scores, alike) == 1e-3


def test_the_reference_grid_is_that_of_the_authors():
    """16,384 places from -0.6 to 1.6, those inside (0, 1), whose first and last count half."""
    places, steps = kde._grid("reference")
    step = 2.2 / 16383
    assert ((places > 0) & (places < 1)).all()
    assert places[0] < step
    assert places[-1] > 1 - step
    np.testing.assert_allclose(np.diff(places), step)
    np.testing.assert_allclose(steps, np.r_[step / 2, np.full(len(places) - 2, step), step / 2])
    for rule in ("paper", 0.3):
        even = kde._grid(rule)
        np.testing.assert_allclose(even, [(np.arange(8192) + 0.5) / 8192, np.full(8192, 1 / 8192)])
