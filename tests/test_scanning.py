"""Rows that are read in batches."""

import itertools

import numpy as np
import pytest
from tests.conftest import overconfident

import calibrant
from calibrant import CalibrantError, make
from calibrant.scanning import scanned

Z, Y = overconfident(600, 4, seed=1)


def batches(*parts, sizes=(0, 1, 200, 200, 600)):
    def start():
        for a, b in itertools.pairwise(sizes):
            yield tuple(part[a:b] for part in parts)

    return start


def test_batches_answer_as_arrays_do():
    weights = np.random.default_rng(0).uniform(0, 2, 600)
    for parts in ((Z, Y), (Z, Y, weights)):
        whole = make("ets").fit(*parts)
        fitted = make("ets").fit(calibrant.scan(batches(*parts)))
        np.testing.assert_allclose(fitted.predict_proba(Z), whole.predict_proba(Z), atol=1e-9)
        assert fitted.n_samples_ == whole.n_samples_


def test_labels_may_be_names_that_no_batch_has_all_of():
    names = np.array(["ant", "bee", "cat", "dog"])[Y]
    order = np.argsort(names)
    fitted = make("ts").fit(calibrant.scan(batches(Z[order], names[order])))
    assert fitted.classes_.tolist() == ["ant", "bee", "cat", "dog"]
    assert fitted.temperature_ == pytest.approx(make("ts").fit(Z, names).temperature_)


def test_probabilities_and_zeros_are_read_as_from_arrays():
    p = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    p = np.where(p < 0.05, 0.0, p)
    p /= p.sum(axis=1, keepdims=True)
    whole = make("ts", inputs="probabilities").fit(p, Y)
    fitted = make("ts", inputs="probabilities").fit(calibrant.scan(batches(p, Y)))
    assert fitted.zero_ == pytest.approx(whole.zero_)
    assert fitted.temperature_ == pytest.approx(whole.temperature_)


def test_mixed_precision_becomes_the_wider_one():
    def start():
        yield Z[:300].astype(np.float32), Y[:300]
        yield Z[300:], Y[300:]

    assert make("ts").fit(calibrant.scan(start)).temperature_ == pytest.approx(make("ts").fit(Z, Y).temperature_, 1e-5)


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (lambda: iter([]), "no rows"),
        (lambda: iter([(Z,)]), "batch 0 of the scan"),
        (lambda: iter([Z]), "batch 0 of the scan"),
        (lambda: iter([(Z, Y), (Z[:, :3], Y)]), "differ in columns"),
        (lambda: iter([(Z, Y), (np.full((1, 4), np.nan), [0])]), "NaN"),
        (lambda: iter([(Z, Y), (Z[:1], [9])]), "does not fit the 4 columns"),
        (lambda: iter([(Z, Y, -np.ones(600))]), "negative weights"),
    ],
)
def test_bad_batches_are_refused(start, words):
    with pytest.raises(CalibrantError, match=words):
        make("ts").fit(calibrant.scan(start))


def test_what_cannot_be_started_anew_is_refused(monkeypatch):
    with pytest.raises(CalibrantError, match="starts the batches anew"):
        calibrant.scan(iter([(Z, Y)]))
    monkeypatch.setattr(scanned, "HELD", 0)
    used = iter([(Z, Y)])
    with pytest.raises(CalibrantError, match="the same batches anew"):
        make("ts").fit(calibrant.scan(lambda: used))
    with pytest.raises(CalibrantError, match="y was given beside a scan"):
        make("ts").fit(calibrant.scan(batches(Z, Y)), Y)


def test_errors_of_the_source_are_its_own():
    def start():
        raise OSError("the disk is gone")
        yield

    with pytest.raises(OSError, match="disk"):
        make("ts").fit(calibrant.scan(start))
