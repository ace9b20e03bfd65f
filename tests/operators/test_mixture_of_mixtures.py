"""Mixtures inside mixtures, and what operators say of themselves."""

import numpy as np
import pytest

import calibrant
from calibrant.maps.binary.isotonic import Isotonic


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_the_weights_of_a_mixture_inside_another_are_products(problem):
    z, y = problem
    inner = calibrant.Mixture([calibrant.VectorScaling(), calibrant.make("irova")], weights=(0.25, 0.75))
    outer = calibrant.Mixture([inner, calibrant.make("hb-mass")], weights=(0.6, 0.4)).fit(z, y)
    first, second = (part._map(z) for part in outer.parts_)
    np.testing.assert_allclose(outer.predict_proba(z), 0.6 * first + 0.4 * second, atol=1e-9)
    terms = outer._summands()
    assert sum(term.weight for term in terms) == pytest.approx(1)
    assert sorted(round(term.weight, 9) for term in terms) == [0.15, 0.4, 0.45]


def test_only_one_strict_map_for_all_classes_keeps_the_ranking():
    for strict in (True, False):
        for share in ("all", "none"):
            kept = calibrant.OneVsRest(Isotonic(strict=strict), share=share).traits.preserves == "ranking"
            assert kept == (strict and share == "all")


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_a_shifted_map_counts_the_steps_of_its_own(problem):
    z, y = problem
    alone = calibrant.make("ts").fit(z, y).fit_report_
    shifted = calibrant.PriorShift(calibrant.make("ts")).fit(z, y).fit_report_
    assert shifted.iterations > alone.iterations
    assert shifted.converged
