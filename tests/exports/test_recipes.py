"""docs/recipes.md does what it says."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from calibrant.metrics import nll

PAGE = Path(__file__).resolve().parents[2] / "docs" / "recipes.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


@pytest.fixture
def told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in BLOCKS[:2]:
        exec(compile(block, str(PAGE), "exec"), names)
    return names


def test_pipelines(told):
    assert told["p"].shape == (450, 10)
    assert nll(told["y_test"], told["p"]) < 0.2
    assert (told["search"].predict(told["X_test"]) == told["y_test"]).mean() > 0.9
    assert np.allclose(told["calibrated"].sum(axis=1), 1)
    assert (told["calibrated"].argmax(axis=1) == told["trained"].predict(told["X_test"])).all()


@pytest.mark.skipif(find_spec("mlflow") is None, reason="needs mlflow-skinny")
@pytest.mark.filterwarnings("ignore")
def test_mlflow(told):
    exec(compile(BLOCKS[2], str(PAGE), "exec"), told)
    assert np.array_equal(told["served"].predict(told["X_test"]), told["calibrated"])
