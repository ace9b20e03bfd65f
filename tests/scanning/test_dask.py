"""Dask arrays: the answers of arrays, lazily."""

import numpy as np
import pytest

import calibrant
from calibrant import make
from calibrant.scanning import scanned

da = pytest.importorskip("dask.array")
GENERATOR = np.random.default_rng(0)
Z = GENERATOR.normal(size=(3000, 4)) * 2
Y = (0.6 * Z + GENERATOR.gumbel(size=Z.shape)).argmax(axis=1)


@pytest.mark.parametrize("held", [0, 10**9])
@pytest.mark.parametrize("chunks", [3000, 700, (1, 2000, 999)])
def test_arrays_answer_as_in_memory(chunks, held, monkeypatch):
    monkeypatch.setattr(scanned, "HELD_BY_CLUSTERS", held)
    z, y = da.from_array(Z, chunks=(chunks, 4)), da.from_array(Y, chunks=1500)
    for name in ("ts", "ets", "imax"):
        fitted = make(name).fit(calibrant.scan(z, label=y))
        gap = np.abs(fitted.predict_proba(Z) - make(name).fit(Z, Y).predict_proba(Z)).max()
        assert gap <= 1e-5, name


def test_answers_to_dask_arrays_are_lazy():
    fitted = make("ets").fit(Z, Y)
    lazy = fitted.predict_proba(da.from_array(Z, chunks=(700, 2)))
    assert type(lazy).__module__.startswith("dask")
    np.testing.assert_allclose(lazy.compute(), fitted.predict_proba(Z))


def _unknown(values, chunks):
    """Rows of which Dask does not know how many they are."""
    array = da.from_array(values, chunks=chunks)
    return array[da.from_array(np.arange(len(values)) % 2 == 0, chunks=chunks[:1])]


@pytest.mark.parametrize(
    ("scores", "labels", "words"),
    [
        (da.from_array(Z, chunks=(700, 4)), da.from_array(Y[:-3], chunks=500), "numbers of rows"),
        (da.from_array(Z, chunks=(700, 4)), Y[:-3], "numbers of rows"),
        (_unknown(Z, (700, 4)), Y[::2], "does not know how many rows"),
        (_unknown(Z, (700, 4)), _unknown(Y, (500,)), "does not know how many rows"),
    ],
)
def test_rows_that_do_not_fit_one_another_are_refused(scores, labels, words):
    with pytest.raises(calibrant.CalibrantError, match=words):
        make("ts").fit(calibrant.scan(scores, label=labels))
