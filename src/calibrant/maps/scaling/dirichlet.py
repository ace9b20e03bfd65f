"""Dirichlet calibration: matrix scaling of log-probabilities."""

from __future__ import annotations

from .matrix import MatrixScaling


class DirichletCalibration(MatrixScaling):
    """p = softmax(W log q + b), q the tempered probabilities, W = I + D (Kull et al. 2019, §3).

    This is what probabilities follow whose class-conditional densities are Dirichlet. It differs from matrix scaling
    in its features: log-probabilities know how sure a row is, logits without their shift do not.

    Parameters, attributes
        As `MatrixScaling`.
    """

    _identifier = "dirichlet-calibration"
    _centred = False
