"""Large fits hold rows out by a weight of zero: every map must take such a row as absent."""

import numpy as np
import pytest

from calibrant import make
from calibrant.passes import Block, in_memory
from calibrant.registry import names


@pytest.mark.parametrize("name", names())
def test_a_row_of_weight_zero_is_absent(name):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(120, 3)) * 2
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(1)
    kept = rng.random(120) < 0.7
    lent, taken = make(name), make(name)
    lent.fit_data(in_memory(Block(z, y, kept.astype(np.float64), 3)))
    taken.fit_data(in_memory(Block(np.ascontiguousarray(z[kept]), y[kept], np.ones(kept.sum()), 3)))
    np.testing.assert_allclose(lent._map(z), taken._map(z), atol=1e-7)
