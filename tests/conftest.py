"""Fixtures that several rooms share."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

# The same examples for the same code, and none is timed: a red suite is red for all.
# `--hypothesis-profile default` looks for others.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

_SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real model outputs kept beside the project; tests that use them are skipped where they are missing."""
    if not _SHARED.is_dir():
        pytest.skip("the shared data set is not here")
    return _SHARED


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def overconfident(n: int, k: int, seed: int = 0, scale: float = 2.5) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Logits whose true temperature is ``scale``: labels are drawn from softmax(z), the model reports scale · z."""
    generator = np.random.default_rng(seed)
    z = generator.normal(size=(n, k)) * 1.5
    gumbel = -np.log(-np.log(generator.random((n, k))))
    return scale * z, (z + gumbel).argmax(axis=1)


@pytest.fixture
def problem() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A small over-confident problem: 600 rows, 5 classes, temperature 2.5."""
    return overconfident(600, 5)
