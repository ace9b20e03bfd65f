"""Every map, the same seed, one, two and four threads, twice: the same bytes."""

import warnings

import numpy as np
import pytest

import calibrant
from calibrant import registry
from calibrant.threads import set_threads

Z = np.random.default_rng(0).normal(size=(70, 3)) * 2
Y = np.where(np.random.default_rng(1).random(70) < 0.6, Z.argmax(axis=1), np.random.default_rng(2).integers(0, 3, 70))
ASKED = np.random.default_rng(3).normal(size=(500, 3)) * 3


def answers(name: str, threads: int) -> bytes:
    set_threads(threads)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", calibrant.CalibrationWarning)
            fitted = registry.make_seeded(name, 5).fit(Z, Y)
        return fitted.predict_proba(ASKED).tobytes() + repr(fitted.fit_report_).encode()
    finally:
        set_threads(None)


@pytest.mark.parametrize("name", registry.names())
def test_the_same_bytes_for_any_number_of_threads_and_again(name):
    first = answers(name, 1)
    for threads in (1, 2, 4):
        assert answers(name, threads) == first, f"{name} with {threads} threads"
