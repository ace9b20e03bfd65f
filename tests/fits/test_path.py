"""The path of strengths: how it falls, where it ends, and which strength is taken."""

from types import SimpleNamespace

import numpy as np
import pytest

from calibrant.fits import path
from calibrant.fits.problem import Point, Solved, Sums


def walk(monkeypatch, losses, total=50.0, weights=(4.0, 6.0)):
    """Walk a path whose held-out losses are given, the fold's share of each; parameters are the numbers of steps."""
    told = iter(losses[1:])
    step = [0]

    def solve(problem, penalty, at, metric, tolerance):
        assert tolerance == 20.0
        step[0] += problem == "first"
        return Solved(Point(np.array([float(step[0])]), Sums(0.0, np.zeros(1))), 1, True)

    def part(fitted, weight):
        held = SimpleNamespace(
            data=SimpleNamespace(total_weight=weight),
            sums=lambda theta: SimpleNamespace(loss=losses[int(theta[0])] * weight),
        )
        start = Point(np.zeros(1), Sums(0.0, np.zeros(1)))
        return path._Part(fitted, held, start, SimpleNamespace(metric=lambda penalty: penalty))

    monkeypatch.setattr(path, "solve", solve)
    parts = [part(name, weight) for name, weight in zip(("first", "second"), weights, strict=True)]
    return path._walk(parts, np.ones(1), total), list(told)


@pytest.mark.parametrize(
    ("losses", "taken", "best"),
    [
        ([5, 6, 7, 8, 9], 3, 0),  # two points of the path at least
        ([5, 4, 6, 9, 9], 3, 1),
        ([5, 4, 3, 3.5, 9], 4, 2),
        ([5, 6, 4, 3, 7, 1], 5, 3),
        (list(range(30, 0, -1)), 14, 13),  # and fourteen at most, the start among them
    ],
)
def test_the_path_ends_where_the_held_out_loss_has_risen(monkeypatch, losses, taken, best):
    found, _ = walk(monkeypatch, losses)
    assert found.curve == pytest.approx(losses[:taken])
    falling = [np.inf, *(50.0 / 10 ** (0.7 * np.arange(taken - 1)))]
    assert found.strengths == pytest.approx(falling)
    assert found.strength == pytest.approx(falling[best])
    assert [theta.tolist() for theta in found.parameters] == [[best], [best]]
    assert [data.total_weight for data in found.held] == [4.0, 6.0]
    assert found.trained_on == 50.0 - 5.0
