"""Mixtures inside mixtures, and what operators say of themselves."""

import numpy as np
import pytest

import calibrant
from calibrant import Chain, make
from calibrant.maps.binary.isotonic import Isotonic
from calibrant.operators._parts import Parts, fitted_parts
from calibrant.passes import Block, in_memory


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


def test_chains_that_begin_alike_answer_their_link_once(problem, monkeypatch):
    """Chains of two and of three; what is no chain, or has one part, answers by itself."""
    z, y = problem[:2]
    chains = [make("ts > irova"), make("ts > hb-mass"), make("ts > bts > irova"), make("ts"), Chain([make("ets")])]
    parts = fitted_parts(chains, in_memory(Block(z, y, None, z.shape[1])))
    link, asked = parts[0].parts_[0], []
    assert all(part.parts_[0] is link for part in parts[:3])
    plain = type(link).link_logits
    monkeypatch.setattr(type(link), "link_logits", lambda own, logits: asked.append(own) or plain(own, logits))
    found = dict(Parts(list(enumerate(parts)))(z))
    assert [own is link for own in asked].count(True) == 1
    for i, part in enumerate(parts):
        np.testing.assert_allclose(found[i], part._map(z), atol=1e-12)
