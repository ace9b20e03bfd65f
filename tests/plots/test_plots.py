"""Plots draw on the Axes they are given, or on a figure that pyplot knows; they change no setting."""

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.conftest import overconfident

from calibrant import compare, make, measure, plots
from calibrant.arrays import softmax
from calibrant.errors import InvalidInput
from calibrant.metrics.estimators.curves import reliability_curve
from calibrant.monitoring import Monitor


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def curves() -> tuple[Any, Any]:
    z, y = overconfident(600, 4)
    before = make("identity").fit(z, y).predict_proba(z)
    after = make("ts").fit(z, y).predict_proba(z)
    return reliability_curve(y, before), reliability_curve(y, after)


def _drawn(ax: Any) -> None:
    ax.figure.canvas.draw()


@pytest.mark.parametrize("how", ["event", "groups", "long", "impossible", "empty"])
def test_monitor(how: str) -> None:
    rng, watched = np.random.default_rng(0), Monitor()
    for k in range(0 if how == "empty" else 150 if how == "long" else 12):
        p = rng.beta(2, 4, 60)
        groups = rng.choice(["a", "<b>"], 60) if how == "groups" else None
        watched.update(rng.random(60) < p / (1 if k < 6 else 2), p, groups=groups)
    if how == "impossible":
        watched.update([1], [0.0])
    settings = dict(mpl.rcParams)
    given = Figure(figsize=(5, 5))
    figure = plots.monitor(watched, figure=given)
    figure.canvas.draw()
    assert figure is given
    assert dict(mpl.rcParams) == settings
    assert len(figure.axes) == (3 if how == "groups" else 2)
    assert plt.get_fignums() == []
    assert plots.monitor(watched).number in plt.get_fignums()


@pytest.mark.parametrize("kind", ["corp", "bars"])
@pytest.mark.parametrize("histogram", ["sqrt", "linear", "log", None])
@pytest.mark.parametrize("face", ["white", "#111111"])
def test_reliability(curves: tuple[Any, Any], kind: str, histogram: str | None, face: str) -> None:
    given = Figure(figsize=(2, 2)).add_subplot(facecolor=face)
    settings = dict(mpl.rcParams)
    ax = plots.reliability(curves[0], curves[1], ax=given, kind=kind, histogram=histogram, note="0.05")
    _drawn(ax)
    assert ax is given
    assert dict(mpl.rcParams) == settings
    assert ax.get_xlim() == (0, 1)
    assert plt.get_fignums() == []


def test_figures_are_in_pyplot(curves: tuple[Any, Any]) -> None:
    settings = dict(mpl.rcParams)
    z, y = overconfident(200, 3)
    found = compare(z, y, methods=["ts"], cv=2, sizes=(20, 60))
    made = [
        lambda: plots.reliability(curves[0]),
        lambda: plots.class_grid([curves[0]]),
        lambda: found.plot(),
        lambda: plots.learning_curve(found),
        lambda: plots.bias_heat_map([[0.01]], [100], [5]),
        lambda: plots.edges_over_densities(z[:, 0], y == 0, [0.0]),
    ]
    for count, draw in enumerate(made, 1):
        drawn = draw()
        assert len(plt.get_fignums()) == count
        assert plt.gcf() is getattr(drawn, "figure", drawn)
    assert dict(mpl.rcParams) == settings


def test_measurements_labels_and_curves_give_the_same_picture(rng: np.random.Generator) -> None:
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    found = measure(y, p, resamples=19)
    marks = [
        ax.containers[0].lines[0].get_xydata()
        for ax in (plots.reliability(found), plots.reliability(found.curve), plots.reliability(y, p))
    ]
    np.testing.assert_array_equal(marks[0], marks[1])
    np.testing.assert_array_equal(marks[0], marks[2])
    both = plots.reliability(found, measure(y, np.sqrt(p), resamples=19))
    assert [t.get_text() for t in both.get_legend().get_texts()] == ["before", "after"]
    z, labels = overconfident(200, 3)
    several = measure(labels, make("identity").fit(z, labels).predict_proba(z), resamples=19)
    assert len(plots.class_grid(several).axes) == 3
    with pytest.raises(InvalidInput, match="no class curves"):
        plots.class_grid(found)


@pytest.mark.parametrize("scale", ["sqrt", "log", "linear"])
def test_the_histogram_can_be_read(curves: tuple[Any, Any], scale: str) -> None:
    ax = plots.reliability(curves[0], histogram=scale)
    _drawn(ax)
    (strip,) = ax.child_axes
    most = curves[0].counts.max()
    ticks = strip.get_yticks()
    assert len(ticks) >= 1
    assert all(0 < tick <= most for tick in ticks)
    assert all(label.get_text() for label in strip.get_yticklabels())
    assert strip.get_ylim()[1] >= most


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
    with pytest.raises(InvalidInput, match="nothing that a reliability diagram"):
        plots.reliability([0, 1])
    with pytest.raises(InvalidInput, match="after must be"):
        plots.reliability(curves[0], [0.2, 0.7])


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


def test_what_has_no_such_picture_is_refused() -> None:
    z, y = overconfident(200, 2)
    measured, compared = measure(y, softmax(z)), compare(z, y, methods=["ts"])
    for draw in (plots.comparison, plots.learning_curve, plots.monitor):
        with pytest.raises(InvalidInput, match="cannot be drawn of it; seen: Measurement"):
            draw(measured)
    with pytest.raises(InvalidInput, match="not compared by this metric; seen: 'ecee'; allowed: nll, brier"):
        plots.comparison(compared, metric="ecee")
    with pytest.raises(InvalidInput, match="no learning curves"):
        plots.learning_curve(compared)


@pytest.mark.parametrize(
    "draw",
    [
        *(
            lambda b=b: plots.bias_heat_map(b, [100, 200], [5])
            for b in (None, "x", 0.1, [[]], [[0.1]], [[0.1, np.nan]])
        ),
        *(lambda n=n: plots.bias_heat_map([[0.1]], n, [5]) for n in (None, 5, [], ["$x"], [[1]])),
        *(
            lambda z=z: plots.edges_over_densities(z, [0, 1], [0.0])
            for z in (None, [], [1.0], [0.0, np.inf], [0, 1e300])
        ),
        *(lambda y=y: plots.edges_over_densities([0.0, 1.0], y, [0.0]) for y in (None, [1], ["a", "b"], [0, 7])),
        lambda: plots.edges_over_densities([0.0, 1.0], [0, 1], "x"),
        lambda: plots.class_grid([], columns=0),
        lambda: plots.class_grid(None),
        lambda: plots.class_grid("curves"),
    ],
)
def test_what_has_no_place_in_a_picture_is_refused(draw) -> None:
    with pytest.raises(InvalidInput):
        draw()


@pytest.mark.parametrize("score", [0.0, -1e99, 1e-320])
def test_scores_that_are_all_equal_are_drawn(score) -> None:
    _drawn(plots.edges_over_densities([score] * 5, [0, 1, 0, 1, 1], [0.0]))


def test_columns_and_numbers_of_small_pictures_are_looked_at(curves: tuple[Any, Any]) -> None:
    for bad in ({"columns": 0}, {"columns": 2.5}, {"columns": None}, {"most": 0}, {"most": -3}):
        with pytest.raises(InvalidInput):
            plots.class_grid([curves[0]], **bad)
    assert plots.class_grid([curves[0]], columns=100).get_figwidth() == 2.0
