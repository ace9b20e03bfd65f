"""The ten scenarios of paper 003: beta distributions (Table 1) times calibration curves (Table 2).

The curve of a data set is its row of smallest AIC in Table 2. The names of four first rows are garbled in the text that
we have, not their coefficients. Each data set lists the same twelve models, so the name is the one that no other row
of the data set bears.
"""

from __future__ import annotations

from types import MappingProxyType

from ..parameters import MOST, Number, check_value
from .curves import GLM
from .distributions import Beta, LogitNormal
from .scenario import Scenario

BY_ELIMINATION = "the row's name is garbled in the text; this is the model that no other row of the data set bears"

# name: (α, β, link, transform, b₀, b₁, note)
TABLES = {
    "resnet110_c10": (2.7752, 0.0478, "logflip", "logflip", -0.24, 0.30, ""),
    "resnet110_SD_c10": (2.1714, 0.0394, "logit", "logflip", -0.27, -0.33, BY_ELIMINATION),
    "resnet_wide32_c10": (2.3806, 0.0379, "logit", "logit", 0.0, 0.26, ""),
    "densenet40_c10": (1.9824, 0.0397, "logit", "logflip", 0.0, -0.26, ""),
    "resnet110_c100": (1.1823, 0.1081, "logflip", "logflip", -0.11, 0.28, BY_ELIMINATION),
    "resnet110_SD_c100": (1.1233, 0.1147, "logit", "logit", -0.88, 0.49, ""),
    "resnet_wide32_c100": (1.0611, 0.0650, "logflip", "logflip", -0.15, 0.21, BY_ELIMINATION),
    "densenet40_c100": (1.0805, 0.0808, "logit", "logit", -0.97, 0.34, ""),
    "resnet152_imgnet": (1.1359, 0.2069, "logflip", "logflip", -0.12, 0.58, ""),
    "densenet161_imgnet": (1.1928, 0.2206, "log", "log", -0.05, 1.27, BY_ELIMINATION),
}


def _scenario(name: str) -> Scenario:
    alpha, beta, link, transform, intercept, slope, note = TABLES[name]
    return Scenario(Beta(alpha, beta), GLM(link, transform, intercept, slope), name, note)


def mix_n_match(beta0: float, beta1: float, name: str = "") -> Scenario:
    """Return the synthetic problem of Mix-n-Match (paper 000, App. E).

    X given the class is N(∓1, 1) and the score is z = σ(β₀ + β₁X), so the log-odds are a mixture of two normals and
    P(Y | z) has log-odds -2X = -2(logit z - β₀)/β₁ (Eq. 14): a straight line.
    """
    check_value("beta0", beta0, Number(-MOST, MOST))
    check_value("beta1", beta1, Number(-MOST, MOST))
    law = LogitNormal((beta0 - beta1, beta0 + beta1), abs(beta1))
    return Scenario(law, GLM("logit", "logit", 2 * beta0 / beta1, -2 / beta1), name)


scenarios: MappingProxyType[str, Scenario] = MappingProxyType({name: _scenario(name) for name in TABLES})

# Mix-n-Match, §5.1: the less and the better calibrated case.
mix_n_match_cases = (mix_n_match(0.5, -1.5, "case 1"), mix_n_match(0.2, -1.9, "case 2"))
