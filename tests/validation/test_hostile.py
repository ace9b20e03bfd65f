"""Input that once raised what is not ours, or that no computation survives."""

import numpy as np
import pytest

import calibrant
from calibrant import registry
from calibrant.errors import CalibrationWarning, InvalidInput
from calibrant.validation import as_scores, as_weights

RNG = np.random.default_rng(0)
Z, Y = RNG.normal(size=(40, 3)), RNG.integers(0, 3, 40)


def fine(p):
    return np.isfinite(p).all() and (p >= 0).all() and np.allclose(p.sum(axis=1), 1)


@pytest.mark.parametrize("bad", [[[1.0, 2.0], [1.0]], [[1.0], 2.0], [[[1.0], [2.0, 3.0]]]])
def test_ragged_lists_are_refused(bad):
    with pytest.raises(InvalidInput, match="scores"):
        calibrant.make("ts").fit(bad, [0, 1])


def test_sparse_tensors_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(InvalidInput, match="to_dense"):
        calibrant.make("ts").fit(torch.tensor(Z).to_sparse(), Y)


@pytest.mark.parametrize(("size", "dtype"), [(1e101, np.float64), (1.7e308, np.float64), (1e35, np.float32)])
def test_scores_that_are_too_large_are_refused(size, dtype):
    scores = np.zeros((40, 3), dtype)
    scores[7, 1] = -size
    with pytest.raises(InvalidInput, match="too large"):
        as_scores(scores, "logits")


@pytest.mark.parametrize("name", ["ts", "ets", "sms", "irova-ets", "irm-ts", "bts", "gp"])
@pytest.mark.parametrize("size", [1e-320, 1e-99, 1e99])
@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_scores_of_any_size_end_in_a_finite_map(name, size):
    assert fine(calibrant.make(name).fit(Z * size, Y).predict_proba(Z))


def test_scores_that_are_next_to_nothing_are_said_to_be_read_as_equal():
    with pytest.warns(CalibrationWarning, match="read as equal"):
        assert not as_scores(Z * 1e-300, "logits").logits.any()


@pytest.mark.parametrize("name", registry.names())
@pytest.mark.parametrize("weights", [np.full(40, 1e300), np.full(40, 1e-300), np.tile([1e300, 1e-300], 20)])
@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_weights_of_any_size(name, weights):
    assert fine(calibrant.make(name).fit(Z, Y, sample_weight=weights).predict_proba(Z))


def test_weights_keep_their_proportions():
    weights = as_weights(np.array([1e300, 3e300]), 2)
    assert weights[1] / weights[0] == pytest.approx(3)
    with pytest.raises(InvalidInput, match="parts"):
        as_weights(np.array([1e300, 3e300]), 2, whole=False)
    ordinary = np.array([0.5, 2.0])
    np.testing.assert_array_equal(as_weights(ordinary, 2), ordinary)


@pytest.mark.parametrize("label", [1e300, -1e19, 2.0**54])
def test_labels_that_no_integer_holds_are_refused(label):
    with pytest.raises(InvalidInput, match="too large to be labels"):
        calibrant.make("ts").fit(Z, np.where(Y == 0, label, 1.0))


def test_ragged_labels_are_refused_by_measure_in_our_words():
    with pytest.raises(InvalidInput, match="y_true"):
        calibrant.measure([[0], [1, 0]], [0.2, 0.7])


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_numbers_in_the_other_byte_order_are_numbers(kind):
    z = Z.astype(kind)
    turned = z.astype(z.dtype.newbyteorder())
    fitted = calibrant.make("ts").fit(turned, Y.astype(">i8"), np.arange(1.0, 41.0).astype(">f8"))
    wanted = calibrant.make("ts").fit(z, Y, np.arange(1.0, 41.0)).predict_proba(z)
    np.testing.assert_array_equal(fitted.predict_proba(turned), wanted)


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="no longer doubles here")
def test_numbers_beyond_a_double_are_refused_as_infinite():
    with pytest.raises(InvalidInput, match="infinity"):
        as_scores(Z.astype(np.longdouble) * np.longdouble(10) ** 4000, "logits")


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_labels_in_half_precision_are_labels():
    half = calibrant.make("ts").fit(Z, Y.astype(np.float16))
    np.testing.assert_array_equal(half.predict_proba(Z), calibrant.make("ts").fit(Z, Y).predict_proba(Z))


def test_lazy_frames_are_refused_with_what_to_call():
    pl = pytest.importorskip("polars")
    with pytest.raises(InvalidInput, match=r"collect\(\)"):
        as_scores(pl.LazyFrame(Z), "logits")
