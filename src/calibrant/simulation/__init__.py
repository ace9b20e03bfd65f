"""The laboratory: models whose true calibration error is known, and experiments that judge estimators by it."""

from . import experiments
from .catalogue import mix_n_match, mix_n_match_cases, scenarios
from .curves import GLM, Power
from .distributions import Beta, Empirical, LogitNormal, Uniform
from .fitting import fit_beta, fit_curves, fit_scenario
from .scenario import Scenario, power_scenario

__all__ = [
    "GLM",
    "Beta",
    "Empirical",
    "LogitNormal",
    "Power",
    "Scenario",
    "Uniform",
    "experiments",
    "fit_beta",
    "fit_curves",
    "fit_scenario",
    "mix_n_match",
    "mix_n_match_cases",
    "power_scenario",
    "scenarios",
]
