"""The contract over the whole registry: new maps are picked up by themselves."""

import pytest

from calibrant import Isotonic, PriorShift, TemperatureScaling, TopLabel, registry
from calibrant.testing import calibrator_checks

# Operators without a registered name; tests/operators/test_rows_with_groups.py has those that need more than labels.
OPERATORS = {"top-label": TopLabel(Isotonic()), "prior-shift": PriorShift(TemperatureScaling())}
MAPS = {entry.name: entry.build() for entry in registry.entries()} | OPERATORS
CASES = [
    pytest.param(check, id=f"{key}-{name}") for key, map_ in MAPS.items() for name, check in calibrator_checks(map_)
]


@pytest.mark.parametrize("check", CASES)
def test_map_keeps_the_contract(check):
    check()
