"""Matrix scaling: every class may speak about every other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...parameters import OneOf
from ...traits import Traits
from ._linear import STRENGTH, LinearScaling

__all__ = ["MatrixScaling", "penalty_shape"]


def penalty_shape(regularisation: str, k: int) -> NDArray[np.float64]:
    """Return the precisions of each class's row of D and its intercept at strength one.

    "l2": one for each. "odir" (off-diagonal and intercept regularisation, Kull et al. 2019, §4): one for each
    off-diagonal weight and 1/(K-1) for each intercept, so that both groups weigh the same in total; none for the
    diagonal.
    """
    if regularisation == "l2":
        return np.ones((k, k + 1)).ravel()
    return np.column_stack([1.0 - np.eye(k), np.full(k, 1.0 / max(1, k - 1))]).ravel()


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
    _constraints: ClassVar[Mapping[str, Any]] = {
        "strength": STRENGTH,
        "regularisation": OneOf("l2", "odir"),
        "intercepts": OneOf("average", "origin"),
    }
    _full = True
    _centred = True

    def __init__(
        self,
        regularisation: str = "l2",
        strength: Any = "evidence",
        intercepts: str = "average",
        *,
        inputs: str = "logits",
        classes: Any = None,
        saturated: str = "small",
    ) -> None:
        self.regularisation = regularisation
        self.strength = strength
        self.intercepts = intercepts
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    def _penalty(self, k: int) -> NDArray[np.float64]:
        return penalty_shape(self.regularisation, k)
