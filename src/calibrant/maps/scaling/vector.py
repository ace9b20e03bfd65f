"""Vector scaling: a slope and an intercept for each class."""

from __future__ import annotations

from typing import Any

from ...declared import attribute, declared, parameter
from ...fits.priors import Prior, ridge
from ...invariants import Values
from ...traits import Traits
from ...types import Array
from ._linear import STRENGTH, LinearScaling


@declared
class VectorScaling(LinearScaling):
    """p = softmax(u + d ∘ x + b): every class has its own slope 1 + d_k and intercept b_k (Guo et al. 2017, §4.2).

    The log-probabilities u = log softmax(z / T) take the logits' place, so that a shift of a row changes nothing. One
    fused pass over the scores gives the loss, its gradient and the curvature; nothing as large as the scores is
    stored.

    Parameters
    ----------
    strength : "evidence", "cv" or float
        Precision of the Gaussian prior on every d_k and b_k, in rows' worth of log-loss. "evidence"
        chooses, for slopes, weights between classes and intercepts apart, what maximises the marginal likelihood of the
        rows; "cv" one strength by cross-validation, many times slower. Both know infinity, temperature scaling.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    temperature_ : float
    weights_ : array of shape (K,)
        d.
    intercept_ : array of shape (K,)
        b.
    strength_ : array of shape (3,)
        The strength used for the slopes, the weights between classes (where there are any) and the intercepts.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import VectorScaling
    >>> logits = np.array([[2.0, 0.0], [3.0, 0.0], [0.0, 1.0], [4.0, 0.0]])
    >>> VectorScaling(strength=1.0).fit(logits, [0, 1, 1, 0]).weights_.shape
    (2,)
    """

    _identifier = "vector-scaling"
    _traits = Traits("scaling", "nothing", "each class", "2K")
    _full = False
    _centred = False
    strength: Any = parameter(STRENGTH, default="evidence")
    weights_: Array = attribute(Values("K"))

    def _prior(self, k: int) -> Prior:
        return ridge(k, 2 * k)
