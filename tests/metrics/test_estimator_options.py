"""What estimators take where nothing is said: by their documentation, and as the public function has it."""

import numpy as np
import pytest

from calibrant import metrics
from calibrant.cells.pairs import Pairs
from calibrant.metrics.estimators.calibration_error import ESTIMATORS, default_norm

# docs/metrics.md: the binned errors, the sweep and those that are no bins are means; two are root mean squares.
OPTIONS = {
    "binned": {"norm": 1, "bins": 15, "edges": "equal_width"},
    "label_binned": {"norm": 1, "bins": 15, "edges": "equal_width"},
    "sweep": {"norm": 1, "edges": "equal_mass"},
    "debiased": {"norm": 2, "bins": 15, "edges": "equal_mass"},
    "kde": {"norm": 1, "bandwidth": "reference", "space": "probability"},
    "smooth": {"norm": 1, "grid": "fine"},
    "ks": {"norm": "max"},
    "ecce": {"norm": "max"},
    "exact": {"norm": 1},
    "crossfit": {"norm": 2, "folds": 5, "random_state": 0},
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_is_taken_where_nothing_is_said(name):
    rng = np.random.default_rng(0)
    p = rng.integers(1, 40, 300) / 40
    y = (rng.random(300) < p**1.5).astype(int)
    plain = metrics.calibration_error(y, p, estimator=name)
    assert plain == pytest.approx(metrics.calibration_error(y, p, estimator=name, **OPTIONS[name]), rel=1e-12)
    assert default_norm(name) == OPTIONS[name]["norm"]
    others = [norm for norm in (1, 2) if norm != OPTIONS[name]["norm"] and name not in ("smooth", "ks", "ecce")]
    for norm in others:
        assert plain != pytest.approx(metrics.calibration_error(y, p, estimator=name, norm=norm), rel=1e-3)


def test_the_exact_error_counts_each_score():
    p, y = np.array([0.25, 0.25, 0.5, 0.75]), np.array([1, 0, 1, 1])
    gaps, share = np.array([0.25, 0.5, 0.25]), np.array([0.5, 0.25, 0.25])
    for norm, wanted in ((1, share @ gaps), (2, np.sqrt(share @ gaps**2)), ("max", 0.5)):
        assert metrics.calibration_error(y, p, estimator="exact", norm=norm) == pytest.approx(wanted)
    assert ESTIMATORS["exact"](Pairs(p, y * 1.0)) == pytest.approx(share @ gaps)
