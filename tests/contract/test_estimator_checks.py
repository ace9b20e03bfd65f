"""scikit-learn's own checks over the whole registry."""

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

from calibrant import CalibrationWarning, registry
from calibrant.testing import expected_failed_checks


@pytest.mark.parametrize("entry", registry.entries(), ids=lambda entry: entry.name)
def test_estimator_checks_pass_where_they_apply(entry):
    map_ = entry.build()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # features are no scores: many fits say so
        warnings.simplefilter("ignore", UserWarning)
        results = check_estimator(map_, expected_failed_checks=expected_failed_checks(map_), on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    # what is listed as not applicable does fail: the list has nothing to spare
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected_failed_checks(map_))
