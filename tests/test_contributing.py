"""The example map of CONTRIBUTING.md keeps the contract."""

import re
from pathlib import Path

import pytest

from calibrant.testing import calibrator_checks

PAGE = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"


def _example():
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)[0]
    room = {"__name__": "contributing_example"}
    exec(compile(code, str(PAGE), "exec"), room)
    return room


@pytest.fixture(scope="module")
def example():
    import sys
    import types

    module = types.ModuleType("contributing_example")  # passes are sent by the name of their module
    vars(module).update(_example())
    sys.modules[module.__name__] = module
    yield module.PriorCorrection
    del sys.modules[module.__name__]


def test_the_example_map_keeps_the_contract(example):
    for _, check in calibrator_checks(example()):
        check()


def test_a_class_that_is_seen_twice_as_often_as_expected_is_doubled(example):
    import numpy as np

    z = np.zeros((300, 2))
    y = np.repeat([0, 1], [200, 100])
    fitted = example(smoothing=1e-9).fit(z + np.random.default_rng(0).normal(size=(300, 2)) * 1e-6, y)
    np.testing.assert_allclose(fitted.predict_proba(z[:1]), [[2 / 3, 1 / 3]], atol=1e-5)
    assert fitted.n_parameters_ == 2
