"""The contract over the whole registry: new maps are picked up by themselves."""

import pytest

from calibrant import registry
from calibrant.testing import calibrator_checks

CASES = [
    pytest.param(check, id=f"{entry.name}-{name}")
    for entry in registry.entries()
    for name, check in calibrator_checks(entry.build())
]


@pytest.mark.parametrize("check", CASES)
def test_map_keeps_the_contract(check):
    check()
