"""Maps that learn nothing say so."""

import numpy as np
import pytest
from scipy.special import log_softmax

from calibrant import make


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("name", ["identity", "uniform"])
def test_a_map_that_learns_nothing_has_its_losses_in_no_steps(name, problem):
    z, y = problem
    report = make(name).fit(z, y).fit_report_
    before = -log_softmax(z, axis=1)[np.arange(len(y)), y].mean()
    after = before if name == "identity" else np.log(z.shape[1])
    assert (report.iterations, report.converged) == (0, True)
    assert (report.loss_before, report.loss_after) == pytest.approx((before, after))
    assert (report.held_out_before, report.held_out_after) == pytest.approx((before, after))
