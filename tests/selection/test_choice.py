"""The rule of choice, and that its words are true."""

import pytest
from tests.conftest import overconfident

from calibrant import CalibrantError, compare, make
from calibrant.selection.choice import choose, explain
from calibrant.selection.result import Estimate, Row


def _row(name: str, gap: float, error: float, parameters: float, learnt: float = 0.0) -> Row:
    """A map whose loss is ``gap`` above the lowest, 0.5; the identity's is taken to be 0.2 above it."""
    value, gain = {"nll": Estimate(0.5 + gap, 1.0)}, {"nll": Estimate(gap - 0.2, 0.01)}
    return Row(name, value, gain, {"nll": Estimate(gap, error)}, parameters, learnt=learnt)


_BIG = _row("big", 0.0, 0.0, 100)
_RAW = _row("identity", 0.2, 0.01, 0)


@pytest.mark.parametrize(
    ("rows", "taken", "words"),
    [
        ([_row("small", 0.004, 0.02, 1)], "small", "small is the simplest map within a quarter of a standard error of"),
        ([_row("small", 0.0024, 0.003, 1)], "small", "within one standard error and 0.5% of the lowest"),
        ([_row("small", 0.0024, 0.002, 1)], "big", "big has the lowest held-out nll, and no simpler map comes near"),
        ([_row("small", 0.006, 0.02, 1)], "big", "big has the lowest"),
        (
            [_row("small", 0.004, 0.02, 1), _row("blend", 0.039, 0.02, 900)],
            "blend",
            "clearly lower held-out nll than blend",
        ),
        ([_row("small", 0.004, 0.02, 1), _row("blend", 0.041, 0.02, 900)], "small", "small is the simplest"),
        ([_row("small", float("inf"), float("inf"), 1)], "big", "big has the lowest"),
    ],
)
def test_the_first_that_is_near_the_lowest_loss_is_taken(rows: list[Row], taken: str, words: str) -> None:
    every = [_BIG, *rows, _RAW]
    chosen, lowest = choose(every, "nll", 1000)
    assert (chosen.name, lowest.name) == (taken, "big")
    assert words in explain(every, chosen, lowest, "nll", 1000, 3, ())


@pytest.mark.parametrize(("gap", "left"), [(0.0024, True), (0.0026, False)])
def test_scores_are_left_alone_where_the_gain_is_noise(gap: float, left: bool) -> None:
    every = [_BIG, _row("blend", 0.001, 0.01, 50), _row("identity", gap, 0.01, 0)]
    chosen, lowest = choose(every, "nll", 1000)
    assert chosen.name == ("identity" if left else "blend")
    assert (
        "within the noise (big: -0.0024 ± 0.0196): leave" in explain(every, chosen, lowest, "nll", 9, 3, ())
    ) == left


@pytest.mark.parametrize(("lowest", "n", "taken"), [("bbq", 200, "blend"), ("bbq", 1000, "bbq"), ("big", 200, "big")])
def test_a_step_function_must_be_ahead_by_its_nats(lowest: str, n: int, taken: str) -> None:
    every = [_row(lowest, 0.0, 0.0, 100), _row("blend", 0.015, 0.005, 900), _RAW]  # 4 nats are 0.02 of 200 rows
    chosen, low = choose(every, "nll", n)
    assert (chosen.name, low.name) == (taken, lowest)
    assert ("less than the 4 nats" in explain(every, chosen, low, "nll", n, 2, ())) == (taken == "blend")


def test_a_map_that_may_not_be_chosen_is_not_the_lowest() -> None:
    barred = Row("barred", {"nll": Estimate(0.4, 1.0)}, {}, {"nll": Estimate(-0.1, 0.1)}, 1, eligible=False)
    assert [row.name for row in choose([barred, _BIG, _RAW], "nll", 1000)] == ["big", "big"]


def test_among_maps_of_one_effective_parameter_the_one_that_learnt_least_is_simplest() -> None:
    rows = [_row("matrix", 0.0, 0.1, 1.0, 20), _row("ts", 0.01, 0.1, 1.001, 1), _row("vector", 0.005, 0.1, 1.0, 8)]
    assert [r.name for r in choose(rows, "nll", 1000)] == ["ts", "matrix"]


def test_the_noise_of_calibrated_scores_is_left_alone() -> None:
    z, y = overconfident(800, 4, scale=1.0)
    found = compare(z, y, methods="fast")
    assert found.best_ == "identity"
    assert "alone" in found.reason
    assert "goes from" not in found.reason


@pytest.mark.parametrize(("error", "taken"), [(0.15, "identity"), (0.05, "big")])
def test_a_blend_that_loses_gives_its_place_to_the_scores(error: float, taken: str) -> None:
    every = [_BIG, _row("blend", 0.25, 0.2, 900), _row("identity", 0.2, error, 0)]
    chosen, lowest = choose(every, "nll", 10)
    assert chosen.name == taken
    left = "not clear of the noise (big: -0.2000" in explain(every, chosen, lowest, "nll", 10, 2, ())
    assert left == (taken == "identity")


def test_one_class_says_nothing_about_maps() -> None:
    scores, _ = overconfident(40, 3)
    with pytest.raises(CalibrantError, match=r"one class only.*every label is 2"):
        compare(scores, [2] * 40, methods=["ts", "beta"])


def test_too_few_rows_to_choose_by_are_refused_with_advice() -> None:
    with pytest.raises(CalibrantError, match="too few to compare maps on; seen: 3 of 4; hint: choose a map yourself"):
        make("auto").fit([-1.0, 0.5, 2.0], [0, 1, 1])
