"""Matrix scaling: every class may speak about every other."""

from __future__ import annotations

from typing import Any

from ...declared import declared, parameter
from ...fits.priors import Prior, odir, ridge
from ...parameters import OneOf
from ...traits import Traits
from ._linear import STRENGTH, LinearScaling


@declared
class MatrixScaling(LinearScaling):
    """p = softmax(u + D x + b) with a full matrix D (matrix scaling of Guo et al. 2017, §4.2).

    The features x are the log-probabilities log softmax(z / T) less their mean over the classes, which are the
    tempered logits without their shift. K² parameters follow noise readily: keep the penalty.

    Parameters
    ----------
    regularisation : {"l2", "odir"}
        What is penalised: every deviation from temperature scaling alike, or the off-diagonal weights and the
        intercepts only (Kull et al. 2019, §4).
    strength : "evidence", "cv" or float
        Precision of the Gaussian prior on a penalised parameter, in rows' worth of log-loss. "evidence"
        chooses, for slopes, weights between classes and intercepts apart, what maximises the marginal likelihood of the
        rows; "cv" one strength by cross-validation, many times slower. Both know infinity, temperature scaling.
    intercepts : {"average", "origin"}
        What the prior on an intercept is about: what its class gets at an average row x̄, b + D x̄ of it, which is
        nearly independent of the weights; or b itself, as published (Kull et al. 2019).
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    temperature_ : float
    weights_ : array of shape (K, K)
        D.
    intercept_ : array of shape (K,)
        b.
    strength_ : array of shape (3,)
        The strength used for the slopes, the weights between classes (where there are any) and the intercepts.
    """

    _identifier = "matrix-scaling"
    _traits = Traits("scaling", "nothing", "full", "K²")
    _full = True
    _centred = True
    regularisation: str = parameter(OneOf("l2", "odir"), default="l2")
    strength: Any = parameter(STRENGTH, default="evidence")
    intercepts: str = parameter(OneOf("average", "origin"), default="average")

    def _prior(self, k: int) -> Prior:
        return odir(k) if self.regularisation == "odir" else ridge(k, k * (k + 1))
