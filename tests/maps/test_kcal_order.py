"""KCal keeps rows, but knows nothing of their order, of blocks, or of what is added to all logits of a row."""

import warnings

import numpy as np
import pytest
from tests.conftest import overconfident

import calibrant
from calibrant import KCal, make
from calibrant.maps.projection import TRAINED


def _fit(calibrator, *given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calibrant.CalibrationWarning)
        return calibrator.fit(*given)


def _embedded(n, d=6):
    z, y = overconfident(n, 4)
    generator = np.random.default_rng(3)
    return z @ generator.normal(size=(4, d)) + 0.1 * generator.normal(size=(n, d)), y


def _batches(x, y, w=None):
    cuts = np.array([0, 1, 7, 7, len(y) // 2, len(y)])

    def start():
        for first, last in zip(cuts[:-1], cuts[1:], strict=True):  # noqa: RUF007
            part = slice(first, last)
            yield (x[part], y[part]) if w is None else (x[part], y[part], w[part])

    return start


def _same(one, two, x, atol):
    np.testing.assert_allclose(one.predict_proba(x), two.predict_proba(x), rtol=0, atol=atol)
    a, b = one.fit_report_, two.fit_report_
    for name in ("loss_before", "loss_after", "held_out_before", "held_out_after", "held_out_error"):
        assert getattr(a, name) == pytest.approx(getattr(b, name), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("build", "embedded"),
    [
        (lambda: KCal("lda"), True),
        (lambda: KCal("identity"), True),
        (lambda: make("kcal-linear"), True),  # trained, on 460 rows
        (lambda: make("kcal-logits", projection="pca"), False),
        (lambda: make("kcal-logits", projection="lda", bandwidth="rule"), False),
    ],
)
def test_order_and_blocks_change_nothing(build, embedded):
    if getattr(build(), "projection", None) in TRAINED:
        pytest.importorskip("torch")
    x, y = _embedded(460) if embedded else overconfident(460, 4)
    whole = _fit(build(), x, y)
    order = np.random.default_rng(1).permutation(len(y))
    _same(whole, _fit(build(), x[order], y[order]), x, 1e-9)
    _same(whole, _fit(build(), calibrant.scan(_batches(x, y))), x, 1e-9)


def test_a_scan_brings_weights():
    x, y = _embedded(200)
    w = np.random.default_rng(2).integers(0, 3, size=200).astype(float)
    _same(_fit(KCal("lda"), x, y, w), _fit(KCal("lda"), calibrant.scan(_batches(x, y, w))), x, 1e-9)


def test_a_shift_of_logits_changes_nothing():
    z, y = overconfident(460, 4)
    shift = np.random.default_rng(1).normal(size=(460, 1)) * 10
    plain, moved = (_fit(make("kcal-logits", projection="lda"), rows, y) for rows in (z, z + shift))
    np.testing.assert_allclose(plain.predict_proba(z), moved.predict_proba(z + shift), rtol=0, atol=1e-6)


def test_zeros_of_training_rows_are_read_as_those_of_calibration_rows():
    z, y = overconfident(400, 4)
    z[::7, 1] = -np.inf
    y[::7] = np.where(y[::7] == 1, 0, y[::7])
    taught = KCal("pca", inputs="logits").fit_projection(z, y)
    assert taught.projection_ is not None
    spread = np.abs(taught.projection_["mean"]).max() + taught.projection_["scale"].max()
    assert spread < 20  # a floor of -104 would dominate it
    assert np.isfinite(_fit(taught, z, y).predict_proba(z)).all()


def test_parameters_are_those_that_are_kept():
    x, y = _embedded(120)
    assert _fit(KCal("identity"), x, y).n_parameters_ == 1 + x.size
    some = _fit(KCal("pca", dim=2, capacity=30), x, y)
    assert some.n_parameters_ == 1 + 30 * 2 + sum(np.size(part) for part in some.projection_.values())
