"""The search of a bandwidth: the least loss wherever it lies, and of many alike the widest."""

from dataclasses import dataclass

import numpy as np
import pytest

from calibrant.maps.density import best_bandwidth


@dataclass
class Bowl:
    """A trial whose loss is least at one bandwidth."""

    place: float
    weights: np.ndarray

    def losses(self, bandwidth):
        return np.full(len(self.weights), 0.3 + (np.log(bandwidth) - self.place) ** 2)


@pytest.mark.parametrize("place", [-17.3, -9.4, -5.2, -4.9, -1.1, 0.0, 2.2, 3.9, 4.1, 6.8, 15.5])
@pytest.mark.parametrize("spread", [1.0, 7.0])
def test_the_least_loss_is_found_on_either_side(place, spread):
    trials = [Bowl(place + np.log(spread), np.ones(3)), Bowl(place + np.log(spread), np.array([0.5]))]
    assert np.log(best_bandwidth(trials, spread) / spread) == pytest.approx(place, abs=1e-2)


def test_trials_count_by_their_weights():
    trials = [Bowl(0.0, np.array([1.0, 2.0])), Bowl(2.0, np.array([1.0]))]
    assert np.log(best_bandwidth(trials, 1.0)) == pytest.approx(0.5, abs=2e-3)


@pytest.mark.parametrize(("floor", "widest"), [(0.0, 24.0), (-3.0, 24.0)])
def test_of_bandwidths_without_a_difference_the_widest_is_taken(floor, widest):
    """As far as a search looks: four beyond the spread, and twenty steps of one."""

    class Flat(Bowl):
        def losses(self, bandwidth):
            return np.zeros(1) + max(0.0, floor - np.log(bandwidth))

    found = np.log(best_bandwidth([Flat(0.0, np.ones(1))], 1.0))
    assert widest - 1.0 <= found <= widest
