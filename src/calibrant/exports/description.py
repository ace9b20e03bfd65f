"""A fitted map as one formula, from the scores as they come to the probabilities, which every back end reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..calibrator import Calibrator
from ..errors import InvalidInput, InvalidType
from ..formulas import Formula, Term, as_rows
from ..formulas.functions import answered, keep_top, log1m, masked_out, read_zeros
from ..parameters import OneOf, check_value


@dataclass(frozen=True, eq=False)
class Description:
    """A formula and what is to be known about it.

    Attributes
    ----------
    formula : Formula
    one_score : bool
        Whether the input is one score a row, of the second of two classes.
    inputs : str
        "logits", "probabilities" or "embeddings".
    classes : list
        What the columns of the answer stand for.
    called : str
        The map's name.
    keeps_labels : bool
        Whether the most probable class is always that of the scores.
    """

    formula: Formula
    one_score: bool
    inputs: str
    classes: list[Any]
    called: str
    keeps_labels: bool


def describe(calibrator: Any, one_score: bool | None = None, *, bare: bool = False) -> Description:
    """Return the formula of a fitted map.

    Parameters
    ----------
    calibrator : Calibrator
    one_score : bool, optional
        Whether a row is one score, of the second of two classes; by default as in `fit`.
    bare : bool
        Leave out what only floating-point corners need: rows that `predict_proba` refuses, ties by rounding, scores in
        single precision, and one score that is infinite (a probability of zero or one).
    """
    if not isinstance(calibrator, Calibrator):
        raise InvalidType(
            "only a fitted map can be exported", seen=type(calibrator).__name__, hint="fit a map on the model's scores"
        )
    check_is_fitted(calibrator, "fit_report_")
    check_value("one_score", one_score, OneOf(None, True, False))
    embedded = calibrator.traits.needs == "embeddings"
    one = calibrator.one_score_ if one_score is None else one_score
    if one and (embedded or calibrator.n_features_in_ != 2):
        raise InvalidInput(
            "one score a row is for maps of two classes", seen=f"{calibrator.n_features_in_} columns", allowed="2"
        )
    formula = Formula(1 if one else calibrator.n_features_in_, double=bare)
    given = formula.input
    if embedded:
        p = calibrator._formula(given)
    elif calibrator._sums_to_one:
        p = _of_scores(calibrator, given, one, bare)
    else:  # a column of scores for each event
        odds = given if calibrator.inputs == "logits" else (given.log() - log1m(given)).rounded()
        p = calibrator._formula(odds)
    formula.output = (p if bare else answered(p, given, events=not calibrator._sums_to_one)).place
    inputs = "embeddings" if embedded else calibrator.inputs
    keeps = calibrator.traits.preserves_accuracy and not embedded
    return Description(formula.pruned(), one, inputs, calibrator.classes_.tolist(), calibrator.called, keeps)


def _of_scores(calibrator: Calibrator, given: Term, one_score: bool, bare: bool) -> Term:
    if calibrator.inputs == "probabilities" and not bare:  # what rounding left outside; NULL would be lost by it in SQL
        given = given.clip(0.0, 1.0) if one_score else given.at_least(0.0)
    z = _logits_of_one(given, calibrator.inputs, bare) if one_score else given
    if calibrator.inputs == "probabilities" and not one_score:
        z = given.log().rounded()
    if calibrator.saturated != "exact" and hasattr(calibrator, "zero_") and not (bare and one_score):
        z = read_zeros(z, calibrator.zero_).rounded()
    p = calibrator._formula(z)
    if calibrator.saturated == "exact" and not (bare and one_score):
        p = masked_out(p, z)
    learnt = calibrator.traits.parameters != "0"  # what has learnt nothing keeps ties as they are
    return keep_top(p, z) if calibrator.traits.preserves_accuracy and learnt and not bare else p


def _logits_of_one(given: Term, inputs: str, bare: bool) -> Term:
    """Return two logits of one score; where it is finite its log-odds need not be taken back from them."""
    if inputs == "probabilities":
        parts = [((1.0 - given).log() if bare else log1m(given)).rounded(), given.log().rounded()]
    else:
        parts = [(-given).at_most(0.0), given.at_most(0.0)]
    z = as_rows(parts)
    if bare:
        odds = given if inputs == "logits" else parts[1] - parts[0]
        z.formula.once(("log-odds", z.place), lambda: odds)
    return z
