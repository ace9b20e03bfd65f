"""Work that is done a block at a time is done whole: limits of blocks change no figure, whatever is left over."""

import numpy as np
import pytest

from calibrant import metrics
from calibrant.cells.pairs import Pairs
from calibrant.metrics.estimators import canonical, kernel
from calibrant.metrics.inference import class_test, cumulative_test, kernel_test, resampling
from calibrant.metrics.views.forecasts import read


def drawn(n, k, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    return (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), p


@pytest.mark.parametrize("rows", [1, 2, 7, 10, 11])
def test_errors_over_pairs_of_rows(monkeypatch, rows):
    y, p = drawn(11, 3)
    w = np.arange(11) % 3 / 2 + 0.5

    def told():
        found = [metrics.canonical_error(y, p, norm=norm, bandwidth=0.2, sample_weight=w) for norm in (1, 2)]
        return found + [metrics.skce(y, p, estimator=how, sample_weight=w) for how in ("unbiased", "biased")]

    whole = told()
    monkeypatch.setattr(canonical, "_BLOCK", rows)
    monkeypatch.setattr(kernel, "_BLOCK", rows)
    np.testing.assert_allclose(told(), whole, rtol=1e-12)


def test_the_middle_distance_of_many_rows_is_that_of_even_ones():
    """Every third of 2,500 rows in the order of their squares: 834 of them, of which the distances are taken."""
    y, p = drawn(2500, 2, 3)
    forecasts = read(y, p, None)
    order = np.lexsort((forecasts.given.squares, forecasts.given.top))
    some = p[order][::3]
    apart = np.abs(some[:, None, 0] - some[None, :, 0])[np.triu_indices(len(some), 1)]
    assert kernel.median_bandwidth(forecasts, "gaussian") == pytest.approx(np.sqrt(2) * np.median(apart))
    assert kernel.median_bandwidth(forecasts, "laplacian") == pytest.approx(np.median(apart))
    twice = read(y, p, np.full(2500, 2.0))
    assert kernel.median_bandwidth(twice, "laplacian") == pytest.approx(np.median(apart), rel=0.02)


@pytest.mark.parametrize("entries", [1, 30, 97, 1000])
def test_laws_by_drawn_labels(monkeypatch, entries):
    """What is drawn comes in one stream, of which a block is a part."""
    y, p = drawn(29, 3, 1)
    w = np.random.default_rng(1).random(29) + 0.5
    pairs = Pairs(p[:, 0], (y == 0) * 1.0, w)

    def told():
        found = [kernel_test.skce_pvalue(read(y, p, None), 40, np.random.default_rng(0))]
        found += [class_test.class_wise_pvalue(read(y, p, one), 40, np.random.default_rng(0)) for one in (None, w)]
        return found, np.concatenate(list(cumulative_test.drawn_outcomes(pairs, 40, np.random.default_rng(0))))

    whole = told()
    for module, name in ((kernel_test, "_BLOCK"), (cumulative_test, "_BLOCK")):
        monkeypatch.setattr(module, name, entries)
    found = told()
    assert found[0] == whole[0]
    np.testing.assert_array_equal(found[1], whole[1])
    monkeypatch.setattr(class_test, "BLOCK", entries)
    again = told()[0]
    assert again[0] == whole[0][0]
    assert np.abs(np.subtract(again, whole[0])).max() < 0.5


@pytest.mark.parametrize("entries", [1, 64, 100_000])
def test_resamples_of_clusters_are_rows_of_their_clusters(monkeypatch, entries):
    monkeypatch.setattr(resampling, "BLOCK", entries)
    rng = np.random.default_rng(2)
    pairs = Pairs(rng.integers(0, 9, 20) / 8, rng.integers(0, 2, 20) * 1.0, clusters=np.arange(20) // 3)
    blocks = list(resampling.resamples_of(pairs, 9, np.random.default_rng(0)))
    assert sum(many.count for many in blocks) == 9
    assert [many.count for many in blocks] == ([1] * 9 if entries == 1 else [3] * 3 if entries == 64 else [9])
    values = np.unique(pairs.scores)
    units = np.random.default_rng(0).integers(0, 7, (9, 7))
    for one, drawn_units in zip(np.concatenate([np.diff(many.mass, axis=1) for many in blocks]), units, strict=True):
        rows = np.concatenate([np.flatnonzero(pairs.clusters == unit) for unit in drawn_units])
        assert one.tolist() == [(pairs.scores[rows] == value).sum() for value in values]
    happened = np.concatenate([np.diff(many.events, axis=1) for many in blocks]).sum()
    assert happened == sum(pairs.outcomes[pairs.clusters == unit].sum() for unit in units.ravel())
