"""Checks of the estimator itself: its parameters, what a fit leaves, and what it refuses to be."""

from __future__ import annotations

import inspect
import numbers
from typing import Any

import numpy as np

from ..calibrator import Calibrator
from ..fits.report import FitReport
from ..traits import Traits
from .problems import fit_quietly, fitted, problem, require


def constructor_stores_only(calibrator: Calibrator) -> None:
    """Store each parameter unchanged under its name, and nothing else."""
    kind = type(calibrator)
    own = calibrator.get_params(deep=False)
    made = kind(**own)
    require(all(getattr(made, name) is value for name, value in own.items()), "the constructor changes a parameter")
    extra = set(vars(made)) - set(own)
    require(not extra, f"the constructor sets {sorted(extra)}")
    named = {p.name: p.kind for p in inspect.signature(kind).parameters.values()}
    for name in ("inputs", "classes"):
        require(named.get(name) == inspect.Parameter.KEYWORD_ONLY, f"{name} must be a keyword-only parameter")


def clones_and_sets_parameters(calibrator: Calibrator) -> None:
    """Work with clone, get_params and set_params."""
    copy = calibrator.unfitted()
    require(repr(copy) == repr(calibrator), "clone is not the same estimator")
    own = calibrator.get_params(deep=False)
    require(copy.set_params(**own) is copy, "set_params does not return the estimator")
    copy.set_params(inputs="probabilities")
    require(copy.inputs == "probabilities" and calibrator.inputs == own["inputs"], "clones share their parameters")


def declares_traits(calibrator: Calibrator) -> None:
    """Declare traits of the known kinds."""
    traits = calibrator.traits
    require(isinstance(traits, Traits), "traits must be a Traits")
    require(traits.preserves in ("ranking", "top label", "nothing"), f"preserves: {traits.preserves!r}")
    require(traits.calibrates in ("top label", "each class", "full"), f"calibrates: {traits.calibrates!r}")


def refuses_bad_parameters(calibrator: Calibrator) -> None:
    """Refuse, in fit, every value that the constraints exclude, with a ValueError that names the parameter."""
    data = problem(20, 2)
    bad = [(name, value) for name, constraint in calibrator._constraints.items() for value in constraint.bad]
    for name, value in [*bad, ("inputs", "odds"), ("inputs", None)]:
        try:
            fitted(calibrator, data.scores, data.labels, **{name: value})
        except ValueError as error:
            require(name in str(error), f"the error about {name}={value!r} does not name it: {error}")
        else:
            raise AssertionError(f"{name}={value!r} was accepted")


def fit_leaves_a_report(calibrator: Calibrator) -> None:
    """Return self from fit, change no parameter, and leave fit_report_ and other plain attributes ending in _."""
    data = problem(60, 2)
    scores, labels = data.scores.copy(), data.labels.copy()
    map_ = calibrator.unfitted()
    before, known = repr(map_.get_params()), set(vars(map_))
    require(fit_quietly(map_, scores, labels) is map_, "fit does not return self")
    require(repr(map_.get_params()) == before, "fit changes a parameter")
    require((scores == data.scores).all() and (labels == data.labels).all(), "fit changes its input")
    require(isinstance(map_.fit_report_, FitReport), "fit leaves no fit_report_")
    _require_report(map_.fit_report_)
    for name, value in vars(map_).items():
        if name not in known:
            require(name.endswith("_") and not name.startswith("_"), f"fit sets {name}, which is no fitted attribute")
            require(_is_plain(value), f"{name} holds a {type(value).__name__}, which a file cannot keep")


def _require_report(report: FitReport) -> None:
    require(isinstance(report.iterations, numbers.Integral) and report.iterations >= 0, "iterations is no count")
    require(isinstance(report.converged, (bool, np.bool_)), "converged is neither True nor False")
    require(report.loss in ("nll", "brier"), f"loss is {report.loss!r}")
    require(np.isfinite(report.loss_before), "loss_before is not finite")
    require(not np.isnan(report.loss_after), "loss_after is NaN")


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, (str, int)) and _is_plain(item) for key, item in value.items())
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufUO"
    return value is None or isinstance(value, (bool, str, numbers.Number, np.generic, Calibrator, FitReport))


CHECKS = (
    constructor_stores_only,
    clones_and_sets_parameters,
    declares_traits,
    refuses_bad_parameters,
    fit_leaves_a_report,
)
