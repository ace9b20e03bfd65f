"""The one function behind every calibration error: a view, an estimator and a norm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...cells.edges import fixed_edges
from ...cells.pairs import Pairs
from ...errors import InvalidInput
from ...parameters import is_one_of
from ..views.forecasts import Forecasts, read, select
from ..views.thresholds import Threshold
from .binned import binned
from .class_wise import class_wise
from .crossfit import crossfit
from .cumulative import ecce, ks
from .debiased import debiased
from .exact import exact
from .kde import kde
from .label_binned import label_binned
from .norms import Norm, check_norm
from .smooth import smooth
from .sums import FROM_SUMS, error_from_sums, group_sums
from .sweep import sweep

ESTIMATORS: dict[str, Callable[..., float]] = {
    "binned": binned,
    "label_binned": label_binned,
    "sweep": sweep,
    "debiased": debiased,
    "kde": kde,
    "smooth": smooth,
    "ks": ks,
    "ecce": ecce,
    "exact": exact,
    "crossfit": crossfit,
}
_DEFAULTS: dict[str, dict[str, Any]] = {name: f.__kwdefaults__ or {} for name, f in ESTIMATORS.items()}
# How scikit-learn spells what we have.
_NORMS: dict[Any, Norm] = {"l1": 1, "l2": 2}
_STRATEGIES = {"uniform": "equal_width", "quantile": "equal_mass"}


def calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    view: Any = "top_label",
    threshold: Threshold = None,
    estimator: str = "binned",
    norm: Norm | str | None = None,
    squared: bool = False,
    sample_weight: Any = None,
    classes: Any = None,
    marginals: bool = False,
    **options: Any,
) -> float:
    """How far probabilities are from frequencies.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Class labels; 0/1 outcomes where ``y_prob`` is one-dimensional.
    y_prob : array-like of shape (n, K) or (n,)
        Probabilities of the classes, or of one event.
    view : {"top_label", "class_wise", "marginals", "pooled"} or a class, default "top_label"
        Top label: the largest probability of a row and whether that class is right. Class-wise: each class against
        the rest, and the power mean over classes in the order of the norm (the plain mean for norm 1, the largest for
        "max"). Marginals: class-wise over rows that need not sum to one. Pooled: all n·K entries as one set of pairs
        (what the code of paper 003 does for its "marginal" sweep). A class: that one against the rest. One event's
        probabilities are pairs already: every view takes them as they are, but for its class 0.
    threshold : None, "1/K", "prior", "kcal" or a number
        For class-wise views: only entries above it count (edges are those of all entries);
        "prior" is each class's frequency, "kcal" max(0.01, 1/K) (paper 001). Classes with no entry are left out.
    estimator : str
        One of "binned", "label_binned", "sweep", "debiased", "kde", "smooth", "ks", "ecce", "exact", "crossfit".
    norm : {1, 2, "max", "l1", "l2"}, optional
        With the final root: norm 2 is a root mean square. By default the estimator's own: 1, but 2 for "debiased"
        and "crossfit", and "max" for "ks" and "ecce". "l1" and "l2" are scikit-learn's words for 1 and 2.
    squared : bool
        Without the final root, for norm 2: the calibration term of the binned Brier score.
    sample_weight : array-like of shape (n,), optional
        A weight of 2 is the row twice.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    marginals : bool
        Allow rows that do not sum to one, in any view.
    **options
        Of the estimator: ``bins``, ``edges``, ``bandwidth``, …; ``n_bins`` and ``strategy="uniform" | "quantile"`` are
        scikit-learn's words for ``bins`` and ``edges``.

    Examples
    --------
    >>> calibration_error([0, 1, 1, 1], [0.25, 0.75, 0.75, 0.75], bins=10)
    0.25
    """
    choice = spelt({"view": view, "threshold": threshold, "estimator": estimator, "norm": norm, **options})
    check_estimator(estimator, choice["norm"])
    everything = isinstance(view, str) and view == "marginals"
    forecasts = read(y_true, y_prob, sample_weight, classes=classes, marginals=marginals or everything)
    return error_of(forecasts, squared=squared, **choice)


def spelt(choice: dict[str, Any]) -> dict[str, Any]:
    """Return options in our words where they came in scikit-learn's."""
    if not ("n_bins" in choice or "strategy" in choice or isinstance(choice.get("norm"), str)):
        return choice
    found = {**choice, "norm": _NORMS.get(choice.get("norm"), choice.get("norm"))}
    if "n_bins" in found:
        found["bins"] = found.pop("n_bins")
    if "strategy" in found:
        strategy = found.pop("strategy")
        if not is_one_of(strategy, _STRATEGIES):
            raise InvalidInput("no such strategy", seen=repr(strategy), allowed=", ".join(map(repr, _STRATEGIES)))
        found["edges"] = _STRATEGIES[strategy]
    return found


def error_of(
    forecasts: Forecasts,
    *,
    view: Any = "top_label",
    threshold: Threshold = None,
    estimator: str = "binned",
    norm: Norm | None = None,
    squared: bool = False,
    **options: Any,
) -> float:
    """Calibration error of validated forecasts."""
    chosen = default_norm(estimator) if norm is None else norm
    if squared:
        if chosen != 2:
            raise InvalidInput("squared needs norm 2", seen=f"norm={chosen!r}", allowed="norm=2")
        return error_of(forecasts, view=view, threshold=threshold, estimator=estimator, norm=2, **options) ** 2
    by_class = isinstance(view, str) and view in ("class_wise", "marginals")
    if threshold is not None and not by_class:
        raise InvalidInput("threshold needs a class-wise view", seen=f"view={view!r}", allowed="view='class_wise'")
    if not by_class:
        return error_of_pairs(
            select(forecasts, view, ("class_wise", "marginals")), estimator=estimator, norm=chosen, **options
        )
    check_options(estimator, options)
    if estimator == "binned" or (estimator in FROM_SUMS and forecasts.top.counts):
        given = {**_DEFAULTS[estimator], **options}
        edges = fixed_edges(given["edges"], given["bins"], forecasts.rows)
        if edges is not None:
            return error_from_sums(group_sums(forecasts, "class_wise", edges, threshold), estimator, chosen)
    return class_wise(forecasts, ESTIMATORS[estimator], threshold, chosen, options)


def error_of_pairs(pairs: Pairs, *, estimator: str = "binned", norm: Norm | None = None, **options: Any) -> float:
    """Calibration error of one set of pairs."""
    if options:
        check_options(estimator, options)
    return ESTIMATORS[estimator](pairs, norm=default_norm(estimator) if norm is None else norm, **options)


def check_estimator(estimator: object, norm: object = None) -> None:
    """Refuse an estimator or a norm that does not exist."""
    if not isinstance(estimator, str) or estimator not in ESTIMATORS:
        raise InvalidInput("no such estimator", seen=repr(estimator), allowed=", ".join(ESTIMATORS))
    if norm is not None:
        check_norm(norm)


def default_norm(estimator: str) -> Norm:
    """Return the norm an estimator has of its own."""
    return _DEFAULTS[estimator]["norm"]


def option_of(choice: Mapping[str, Any], name: str) -> Any:
    """Return an option of an estimator: the given one, or its own."""
    return choice[name] if choice.get(name) is not None else _DEFAULTS[choice["estimator"]][name]


def check_options(estimator: str, options: Mapping[str, Any]) -> None:
    """Refuse options that an estimator does not have."""
    allowed = [name for name in _DEFAULTS[estimator] if name != "norm"]
    for name in options:
        if name not in allowed:
            raise InvalidInput(f"estimator {estimator!r} has no option {name!r}", allowed=", ".join(allowed) or "none")
