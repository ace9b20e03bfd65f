"""The options of vLLM's pooler that make its scores calibrated: activation((logit - logit_mean) / logit_sigma)."""

from __future__ import annotations

import json
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..errors import InvalidInput
from ..maps.binary.platt import PlattScaling
from ..maps.scaling.temperature import TemperatureScaling
from ..maps.scaling.trivial import Identity
from ..operators.one_vs_rest import OneVsRest


def to_vllm(calibrator: Any) -> str:
    """Return JSON for ``vllm serve --pooler-config``, of a temperature or a Platt map of one score.

    A reranker or classifier that vLLM serves answers σ((z - logit_mean) / logit_sigma) of its score, or softmax of such
    logits. That is temperature scaling with logit_sigma = T, and Platt scaling σ(a z + c) of one score with
    logit_sigma = 1/a and logit_mean = -c/a. vLLM has the two options since its version of April 2026.
    """
    check_is_fitted(calibrator, "fit_report_")
    if isinstance(calibrator, OneVsRest) and len(calibrator.maps_) == 1 and calibrator.n_features_in_ == 2:
        calibrator = calibrator.maps_[0]
    if isinstance(calibrator, Identity):
        return json.dumps({"use_activation": True})
    if isinstance(calibrator, TemperatureScaling):
        return json.dumps({"use_activation": True, "logit_sigma": float(calibrator.temperature_)})
    if isinstance(calibrator, PlattScaling):
        slope, _, offset = calibrator.coefficients_.tolist()
        if slope == 0:
            raise InvalidInput("vLLM divides by 1/a, and this Platt map has a slope of zero", seen=f"c = {offset:.4g}")
        told = {"use_activation": True, "logit_mean": -offset / slope, "logit_sigma": 1.0 / slope}
        return json.dumps(told)
    raise InvalidInput(
        f"{calibrator.called} cannot be said in vLLM's pooler options",
        allowed="temperature scaling (ts), and Platt scaling (platt) of one score",
    )
