"""Plots draw on the Axes they are given and touch nothing else."""

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.conftest import overconfident

from calibrant import compare, make, plots
from calibrant.errors import InvalidInput
from calibrant.metrics.curves import reliability_curve


@pytest.fixture(scope="module")
def curves() -> tuple[Any, Any]:
    z, y = overconfident(600, 4)
    before = make("identity").fit(z, y).predict_proba(z)
    after = make("ts").fit(z, y).predict_proba(z)
    return reliability_curve(y, before), reliability_curve(y, after)


def _drawn(ax: Any) -> None:
    ax.figure.canvas.draw()


@pytest.mark.parametrize("kind", ["corp", "bars"])
@pytest.mark.parametrize("histogram", ["linear", "log", None])
@pytest.mark.parametrize("face", ["white", "#111111"])
def test_reliability(curves: tuple[Any, Any], kind: str, histogram: str | None, face: str) -> None:
    given = Figure(figsize=(2, 2)).add_subplot(facecolor=face)
    settings = dict(mpl.rcParams)
    ax = plots.reliability(curves[0], curves[1], ax=given, kind=kind, histogram=histogram, note="0.05")
    _drawn(ax)
    assert ax is given
    assert dict(mpl.rcParams) == settings
    assert ax.get_xlim() == (0, 1)


def test_the_marks_are_the_curve(curves: tuple[Any, Any]) -> None:
    ax = plots.reliability(curves[0])
    marks = ax.containers[0].lines[0]
    np.testing.assert_array_equal(marks.get_xdata(), curves[0].binned.score)
    np.testing.assert_array_equal(marks.get_ydata(), curves[0].binned.frequency)


def test_wrong_choices_are_named(curves: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidInput, match="kind"):
        plots.reliability(curves[0], kind="pie")
    with pytest.raises(InvalidInput, match="histogram"):
        plots.reliability(curves[0], histogram="cubic")
    with pytest.raises(InvalidInput, match="no class curves"):
        plots.class_grid([])


def test_classes_worst_first() -> None:
    z, y = overconfident(600, 4)
    p = make("identity").fit(z, y).predict_proba(z)
    made = [reliability_curve(y, p, view=k) for k in range(4)]
    figure = plots.class_grid(made, columns=2, most=3)
    figure.canvas.draw()
    notes = [float(ax.texts[0].get_text().splitlines()[-1]) for ax in figure.axes]
    assert len(notes) == 3
    assert notes == sorted(notes, reverse=True)


def test_comparison_and_learning_curve() -> None:
    z, y = overconfident(300, 3)
    found = compare(z, y, methods=["ts", "platt"], cv=2, sizes=(20, 100))
    ax = found.plot()
    _drawn(ax)
    assert {t.get_text() for t in ax.get_yticklabels()} == {"identity", "ts", "platt"}
    lines = plots.learning_curve(found)
    _drawn(lines)
    assert len(lines.get_legend().get_texts()) == 3


def test_the_lab() -> None:
    _drawn(plots.bias_heat_map([[0.01, -0.02], [0.0, 0.03]], [100, 200], [5, 15]))
    z, y = overconfident(300, 3)
    _drawn(plots.edges_over_densities(z[:, 0], y == 0, [-np.inf, -1, 1, np.inf]))
