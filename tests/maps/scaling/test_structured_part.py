"""One part of structured scaling: a linear map of log-probabilities."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from test_linear_maps import skewed

from calibrant.maps.scaling._structured_part import StructuredPart


@pytest.mark.parametrize("form", ["own", "centred", "plain"])
def test_a_part_is_a_linear_map_of_log_probabilities(form):
    z, y = skewed(1500, 5)
    u = log_softmax(z, axis=1)
    part = StructuredPart(form).fit(u, y)
    x = u - u.mean(axis=1, keepdims=True) if form == "centred" else u
    if form == "centred":
        mean, deviation = part.confidence_
        x = np.column_stack([x, (u.mean(axis=1) - mean) / deviation])
    d = np.diag(part.weights_) if form == "own" else part.weights_
    np.testing.assert_allclose(part.predict_proba(u), softmax(u + x @ d.T + part.intercept_, axis=1), rtol=1e-8)
    assert part.fit_report_.loss_after < part.fit_report_.loss_before
    torch = pytest.importorskip("torch")
    np.testing.assert_allclose(part.to_torch()(torch.from_numpy(u)).numpy(), part.predict_proba(u), atol=1e-12)
