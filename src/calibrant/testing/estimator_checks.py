"""Which of scikit-learn's own estimator checks cannot apply to a calibrator, and why."""

from __future__ import annotations

from typing import Any

import sklearn

_THREE_OVER_TWO = (
    "the check fits three classes on two columns; a calibrator's columns are the scores of its classes, one each. "
    "What the check is about is tested with three columns by check_calibrator"
)

NOT_APPLICABLE: dict[str, str] = dict.fromkeys(
    (
        "check_classifiers_classes",
        "check_classifiers_train",
        "check_estimators_fit_returns_self",
        "check_estimators_overwrite_params",
        "check_readonly_memmap_input",
    ),
    _THREE_OVER_TWO,
)

_OF_PARTIAL_FIT: dict[str, str] = dict.fromkeys(
    ("check_estimators_partial_fit_n_features", "check_n_features_in_after_fitting"), _THREE_OVER_TWO
)

_OF_CV = {
    "check_sample_weight_equivalence_on_dense_data": (
        "the check hands lists of splits to a parameter named cv; a calibrator's folds are a number, and come from the "
        "rows' content. What the check is about is tested by check_calibrator"
    )
}

if sklearn.__version__.startswith("1.6."):
    NOT_APPLICABLE["check_sample_weight_equivalence_on_sparse_data"] = (
        "scikit-learn 1.6 runs it on estimators whose tags say that they take no sparse data; later versions do not"
    )


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Return the checks that cannot apply to a calibrator, with the reason, for scikit-learn's ``check_estimator``.

    Maps on embeddings take any columns, and have none of these. Pass it on:
    ``check_estimator(map, expected_failed_checks=expected_failed_checks(map))``.
    """
    if estimator.traits.needs == "embeddings":
        return {}
    of_cv = _OF_CV if getattr(estimator, "cv", None) is not None else {}
    return {**NOT_APPLICABLE, **(_OF_PARTIAL_FIT if hasattr(estimator, "partial_fit") else {}), **of_cv}
