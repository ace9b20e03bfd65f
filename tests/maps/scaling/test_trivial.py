"""Maps that learn nothing say so."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from calibrant import Identity, Uniform, make


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


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_the_gain_of_knowing_nothing_has_an_error(rng):
    z = rng.normal(size=(400, 3)) * 2
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    weights = rng.uniform(0.5, 2, 400)
    gains = np.log(3) - (logsumexp(z, axis=1) - z[np.arange(400), y])
    mean = weights @ gains / weights.sum()
    error = np.sqrt(weights**2 @ (gains - mean) ** 2) / weights.sum()
    report = Uniform().fit(z, y, weights).fit_report_
    assert report.held_out_after - report.held_out_before == pytest.approx(mean)
    assert report.held_out_error == pytest.approx(error)  # it was 0: any loss or gain was certain
    assert Identity().fit(z, y).fit_report_.held_out_error == 0
