"""Probabilities of a coarse type are accepted where rounding explains that they do not sum to one."""

import numpy as np
import pytest
from tests.conftest import overconfident

from calibrant import make, measure
from calibrant.errors import InvalidInput
from calibrant.metrics import accuracy, nll
from calibrant.validation import as_probabilities, as_scores

torch = pytest.importorskip("torch")
Z, Y = overconfident(400, 5)
P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)


def test_bfloat16_is_accepted() -> None:
    coarse = torch.softmax(torch.tensor(Z), dim=1).bfloat16()
    off = (coarse.double().sum(dim=1) - 1).abs().max()
    assert off > 1e-3
    assert as_scores(coarse, "probabilities").logits.dtype == np.float32
    assert as_probabilities(coarse).values.dtype == np.float32
    assert nll(Y, coarse) == pytest.approx(nll(Y, P), rel=1e-2)
    assert accuracy(Y, coarse) == pytest.approx(accuracy(Y, P), abs=0.02)
    assert measure(Y, coarse, resamples=20).n == 400
    fitted = make("ts", inputs="probabilities").fit(coarse, Y)
    assert fitted.temperature_ == pytest.approx(make("ts", inputs="probabilities").fit(P, Y).temperature_, rel=2e-2)
    np.testing.assert_allclose(fitted.predict_proba(coarse).sum(axis=1), 1, rtol=1e-5)


def test_half_precision_is_accepted() -> None:
    for half in (P.astype(np.float16), torch.tensor(P).half()):
        assert nll(Y, half) == pytest.approx(nll(Y, P), rel=1e-2)
        make("ts", inputs="probabilities").fit(half, Y)


def test_more_than_rounding_is_refused() -> None:
    coarse = torch.tensor(P).bfloat16()
    with pytest.raises(InvalidInput, match=r"sum to 1 within 0\.00390625"):
        as_scores(coarse * 0.98, "probabilities")
    with pytest.raises(InvalidInput, match=r"sum to 1 within 0\.001"):
        as_scores(coarse.float(), "probabilities")
    with pytest.raises(InvalidInput, match=r"within 0\.00390625"):
        nll(Y, coarse * 0.98)
