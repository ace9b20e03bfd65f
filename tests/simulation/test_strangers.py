"""Every public callable of the laboratory, with a stranger in the place of each argument in turn."""

import contextlib
import inspect
import time
import warnings

import numpy as np
import pytest

from calibrant import simulation
from calibrant.errors import CalibrantError, CalibrationWarning
from calibrant.simulation import controls, experiments

RNG, SCENARIO = np.random.default_rng(0), simulation.scenarios["resnet110_c10"]
Y, P = SCENARIO.sample(40, random_state=0)
LAWS = (simulation.Beta(2, 0.5), simulation.Uniform(), simulation.LogitNormal((0.0,), 1.0), simulation.Empirical(P))
CURVES = (simulation.Power(2.0), simulation.GLM("logit", "log", 0.1, 1.0))
DRAWN = SCENARIO.draw(2, 5, RNG)
GOOD = {
    "rng": RNG, "random_state": 0, "repeats": 2, "n": 5, "bins": 3, "shape": (2, 3), "norm": 2, "x": np.zeros(2),
    "score": np.array([0.2, 0.9]), "complement": np.array([0.8, 0.1]), "function": np.multiply, "breaks": (0.0,),
    "alpha": 2.0, "beta": 0.5, "low": 0.1, "high": 0.9, "means": (0.0, 1.0), "deviation": 1.0, "scores": P,
    "complements": 1 - P + 1e-9, "outcomes": Y, "y_true": Y, "y_prob": P, "name": "", "note": "", "exponent": 2.0,
    "link": "logit", "transform": "log", "intercept": 0.1, "slope": 1.0, "beta0": 0.5, "beta1": -1.5, "tce": 0.05,
    "distribution": LAWS[1], "curve": CURVES[0], "scenario": SCENARIO, "drawn": DRAWN, "progress": False,
    "estimator": "binned", "edges": "equal_mass", "false_alarms": 0.05, "estimates": np.arange(2.0),
    "deviations": np.ones((2, 6)),
}  # fmt: skip
STRANGERS = [
    None, "x", b"x", True, -1, 0, 2.5, 10**30, 10**400, 1e-300, 1e300, -1e300, np.nan, np.inf, 1j, [], {}, set(),
    [[1], [1, 2]], [None], ["x"], [np.nan], [10**400], object(), np.zeros((2, 3, 4)), np.array([1, 2]), np.array("x"),
    np.datetime64("2020"), lambda *a, **k: None, Y, P,
]  # fmt: skip


def public(owner):
    found = [getattr(owner, name) for name in dir(owner) if not name.startswith("_")]
    return [f for f in found if callable(f) and getattr(f, "__module__", "").startswith("calibrant.simulation")]


CALLS = [getattr(simulation, name) for name in simulation.__all__ if callable(getattr(simulation, name))]
RUNS = [experiments.run, experiments.bias, experiments.variance, experiments.absolute_error]
CALLS += [*RUNS, experiments.sweep_bins, experiments.miss_rate, controls.control_deviations, controls.adjusted_mean]
CALLS += [method for owner in (*LAWS, *CURVES, SCENARIO) for method in public(owner)]


def settings_of(call):
    names = [name for name, p in inspect.signature(call).parameters.items() if p.kind != p.VAR_KEYWORD]
    if call in RUNS:
        names = list(inspect.signature(experiments.run).parameters)[:-1]
    settings = {name: GOOD[name] for name in names}
    return settings | ({"tce": [0.05]} if call is experiments.miss_rate else {})


@pytest.mark.parametrize("call", CALLS, ids=lambda call: getattr(call, "__qualname__", str(call)))
def test_strangers_are_refused_or_answered(call):
    good = settings_of(call)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CalibrationWarning)
        call(**good)
        for name in good:
            for stranger in STRANGERS:
                if callable(stranger) and name == "function":
                    continue
                begun = time.process_time()
                with contextlib.suppress(CalibrantError):
                    call(**{**good, name: stranger})
                assert time.process_time() - begun < 1


@pytest.mark.parametrize(("estimator", "option"), [("kde", "space"), ("kde", "bandwidth"), ("crossfit", "folds")])
@pytest.mark.parametrize("stranger", STRANGERS[:-2], ids=lambda s: repr(s)[:20])
@pytest.mark.filterwarnings("error", "ignore::calibrant.errors.CalibrationWarning")
def test_strangers_as_options_of_an_estimator(estimator, option, stranger):
    with contextlib.suppress(CalibrantError):
        experiments.run(SCENARIO, n=20, repeats=1, progress=False, estimator=estimator, **{option: stranger})
