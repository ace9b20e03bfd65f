"""A fit's report reads well when it is printed."""

import numpy as np
import pytest
from tests.conftest import overconfident

from calibrant import make
from calibrant.fits.report import FitReport


def test_a_printed_report_is_a_few_plain_lines() -> None:
    report = FitReport(4, True, "nll", 1.5, 0.75, 1.5, 0.8, 0.1, caveat="few rows a class")
    assert str(report).splitlines() == [
        "log-loss: 1.5000 before, 0.7500 after on the rows fitted",
        "log-loss: 1.5000 before, 0.8000 after on other rows (-0.7000 ± 0.1960)",
        "converged in 4 steps",
        "note: few rows a class",
    ]
    assert repr(report).startswith("FitReport(iterations=4, converged=True")


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (FitReport(0, True, "nll", 1.0, 1.0), "found in closed form"),
        (FitReport(0, True, "nll", 1.0, 1.0), "too few rows to tell"),
        (FitReport(1, False, "brier", 1.0, 0.9), "Brier score: 1.0000 before, 0.9000 after"),
        (FitReport(1, False, "brier", 1.0, 0.9), "did not converge in 1 step"),
        (FitReport(2, True, "nll", 1.0, 0.9, 1.0, 1.2, 0.01), ": worse than without the map"),
        (FitReport(2, True, "nll", 1.0, 0.9, 1.0, 0.99, 0.01), ": not clearly better"),
        (FitReport(2, True, "nll", np.inf, 0.9, np.inf, 1.2, np.inf), "∞ before, 1.2000 after on other rows\n"),
        (FitReport(2, True, "nll", 1.0, 0.9, at_bound=("temperature",)), "at the edge of its range: temperature"),
        (FitReport(2, True, "nll", 1.0, 0.9, messages=("odd scores",)), "note: odd scores"),
    ],
)  # fmt: skip
def test_what_deserves_a_word_has_one(report: FitReport, words: str) -> None:
    assert words in str(report)
    assert "nan" not in str(report)


def test_real_reports_are_printed() -> None:
    fitted = make("ets").fit(*overconfident(500, 3))
    assert 3 <= len(str(fitted.fit_report_).splitlines()) <= 6


def test_a_fit_that_goes_on_has_converged_where_both_have():
    begun = FitReport(3, True, "nll", 1.0, 0.9)
    assert begun.gone_on(4, True, 0.8).iterations == 7
    assert begun.gone_on(4, True, 0.8).converged
    assert not begun.gone_on(4, False, 0.8).converged
    assert not FitReport(3, False, "nll", 1.0, 0.9).gone_on(4, True, 0.8).converged
    assert FitReport(3, False, "nll", 1.0, 0.9, at_bound=("x",)).gone_on(4, True, 0.8).converged


@pytest.mark.parametrize(("after", "proven", "few"), [(-1.96, True, True), (-1.961, True, False), (-1.959, True, True)])
def test_a_gain_of_just_so_many_errors_is_one_that_few_rows_decide(after, proven, few) -> None:
    report = FitReport(2, True, "nll", 0.0, 0.0, 0.0, after, 1.0, held_out_pvalue=1e-4)
    assert report.unproven is not proven
    assert ("few rows decide" in str(report)) is few
    assert FitReport(2, True, "nll", 0.0, 0.0, 0.0, after, 1.0, held_out_pvalue=0.9).unproven is few


def test_a_gain_is_that_over_the_scores_not_below_zero() -> None:
    """A Brier score or a loss of 2 without the map and 1 with it, known to a tenth."""
    assert not FitReport(2, True, "nll", 2.0, 1.0, 2.0, 1.0, 0.1).unproven
    assert FitReport(2, True, "nll", 2.0, 1.0, 1.0, 2.0, 0.1).unproven
    assert FitReport(2, True, "nll", 2.0, 1.0, 2.0, 1.9, 0.1).unproven
