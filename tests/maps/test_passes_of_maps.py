"""How many passes a search takes: a tolerance, start or curvature that is a little wrong costs passes, not answers."""

import numpy as np
import pytest
from tests.conftest import overconfident

import calibrant

# Passes over 3,000 rows of 4 classes, at most: as they are, of weight 10⁶ each, of scores times 100 and over 1,000.
PASSES = {
    "ts": (5, 5, 8, 6),
    "ets": (9, 9, 12, 11),
    "bts": (6, 9, 9, 7),
    "iop": (9, 15, 12, 10),
    "gp": (8, 19, 11, 13),
    "platt": (7, 8, 7, 6),
    "beta": (9, 9, 7, 6),
    "beta-s": (7, 8, 7, 6),
    "quadratic": (6, 7, 5, 6),
    "logit-spline": (14, 18, 10, 14),
    "vector": (17, 11, 20, 18),
    "matrix-odir": (15, 11, 18, 16),
    "dirichlet": (17, 11, 20, 18),
    "hoki": (3, 3, 3, 3),
}


@pytest.mark.parametrize("name", PASSES)
def test_a_search_takes_no_more_passes_than_it_did(name):
    z, y = overconfident(3000, 4)
    z += [0.5, 0.0, -0.5, 0.0]
    heavy = np.full(len(y), 1e6)
    fits = [(z, None), (z, heavy), (100 * z, None), (z / 1000, None)]
    reports = [calibrant.make(name).fit(scores, y, sample_weight=w).fit_report_ for scores, w in fits]
    assert all(report.converged for report in reports)
    assert all(report.iterations <= most for report, most in zip(reports, PASSES[name], strict=True))
