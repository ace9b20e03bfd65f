"""Which optima of a pilot are polished on all rows, on which rows a search looks, and where it begins."""

import numpy as np
import pytest

from calibrant.fits import mixture_search
from calibrant.fits.mixing import Mixing
from calibrant.fits.solvers.simplex import Found
from calibrant.passes import Block, in_memory


def found(value, weights=(0.5, 0.5), beside=(0.0,)):
    return Found(np.array(weights), np.array(beside), value, 3, True)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_optima_that_may_be_the_best_are_polished_once(sign):
    """As close as a pilot can tell to the least value, and apart in weights or in an unknown beside them."""
    close, same = mixture_search._CLOSE, mixture_search._SAME
    level = 10.0 * sign
    reach = close * abs(level)
    best = found(level)
    near, far = found(level + 0.99 * reach, beside=(1.0,)), found(level + 1.01 * reach, beside=(-1.0,))
    again = found(level + 0.5 * reach, beside=(0.9 * same,))
    moved = found(level + 0.6 * reach, weights=(0.5 + 2 * same, 0.5 - 2 * same))
    kept = mixture_search._worth_polishing([far, moved, again, near, best])
    assert kept == [best, moved, near]
    assert mixture_search._apart(best, moved) == pytest.approx(2 * same)
    assert mixture_search._apart(best, near) == pytest.approx(1.0)
    assert mixture_search._apart(near, best) == mixture_search._apart(best, near)


def test_a_search_looks_at_pilots_of_many_rows_first(monkeypatch):
    monkeypatch.setattr(mixture_search, "_PILOTS", (40, 10))
    for rows, sizes in ((81, [10, 40, 81]), (80, [10, 80]), (21, [10, 21]), (20, [20])):
        data = in_memory(Block(np.random.default_rng(0).normal(size=(rows, 3)), np.arange(rows) % 3, None, 3))
        samples = mixture_search._samples(data)
        assert [sample.n for sample in samples] == sizes
        assert samples[-1] is data
        assert [mixture_search._tolerance(sample, data) for sample in samples] == [
            *[mixture_search._ROUGHLY] * (len(sizes) - 1),
            mixture_search._ARRIVED,
        ]


@pytest.mark.parametrize("values", [[3, 1, 2, 2, 0, 5], [1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [4, 1, 3, 1, 4, 0]])
def test_the_two_best_basins_of_a_scan_are_gone_down(monkeypatch, values):
    """Ends of the scan are basins too; each begins with its own best weights, near those of its neighbour."""
    places = mixture_search._GRID
    some = np.linspace(0, len(places) - 1, len(values)).round().astype(int)
    monkeypatch.setattr(mixture_search, "_GRID", places[some])
    asked = []

    def descend(mixing, data, weights, log_betas, bounds, tolerance):
        asked.append((weights.tolist(), log_betas.tolist(), tolerance))
        share = 0.1 * len(asked)
        return found(float(values[len(asked) - 1]), weights=(share, 1 - share))

    monkeypatch.setattr(mixture_search, "_descend", descend)
    starts = mixture_search._starts(None, Mixing((None, 1.0), "nll"), 0.5, (-9.0, 9.0))
    assert [one[0] for one in asked] == [
        [0.5, 0.5],
        *[pytest.approx([0.1 * i, 1 - 0.1 * i]) for i in range(1, len(values))],
    ]
    assert all(one[1] == [] and one[2] == mixture_search._SCANNED for one in asked)
    padded = [np.inf, *values, np.inf]
    basins = [i for i in range(len(values)) if padded[i + 1] <= min(padded[i], padded[i + 2])]
    wanted = sorted(basins, key=lambda i: (values[i], i))[:2]
    assert [x[0] for _, x in starts] == pytest.approx([0.5 + places[some][i] for i in wanted])
    assert [w[0] for w, _ in starts] == pytest.approx([0.1 * (i + 1) for i in wanted])


def test_several_temperatures_begin_on_ladders_within_their_bounds():
    mixing = Mixing((None, None, 0.0), "nll")
    starts = mixture_search._starts(None, mixing, 0.2, (-0.5, 0.4))
    assert len(starts) == len(mixture_search._LADDERS)
    for (weights, ladder), width in zip(starts, mixture_search._LADDERS, strict=True):
        np.testing.assert_allclose(weights, 1 / 3)
        np.testing.assert_allclose(ladder, np.clip([0.2 - width, 0.2 + width], -0.5, 0.4))
    ((weights, none),) = mixture_search._starts(None, Mixing((1.0, 0.0), "nll"), 0.2, (-1.0, 1.0))
    assert (weights.tolist(), none.tolist()) == ([0.5, 0.5], [])
