"""What maps answer at settings that are not the usual ones is what it was, and what their parameters and files may be.

Where every test takes a map as it comes, no test sees that a setting counts.
"""

import re

import numpy as np
import pytest
from tests.kept.comparing import check
from tests.kept.test_kept_maps import classes

import calibrant
from calibrant import OneVsRest, registry
from calibrant.calibrator import Calibrator
from calibrant.maps.binary.binning import Binning
from calibrant.maps.binary.isotonic_centred import CentredIsotonic
from calibrant.maps.binary.logit_spline import LogitSpline
from calibrant.maps.binary.quadratic import QuadraticScaling

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
Z, Y = classes(140, 3, 31)
W = np.random.default_rng(31).choice([0.5, 1.0, 2.5], 140)
EVENTS = classes(110, 2, 32)
# One event of scores that lie far out, and of a few that are all alike.
FAR = np.where(np.arange(110)[:, None] % 11, EVENTS[0], 60.0 * EVENTS[0]), EVENTS[1]
SURE = EVENTS[0] * 4.0, (EVENTS[0] @ [-1, 1] > 0).astype(int)
BINARY = {
    "bbq": [{"strength": 0.5}, {"strength": 20.0, "models": 2}, {"models": 1}],
    "beta": [{"form": form} for form in ("abm", "ab", "am", "a")]
    + [{"smooth_targets": 3.0}, {"smooth_targets": False}],
    "platt": [{"smooth_targets": 0.25}, {"smooth_targets": True}, {"smooth_targets": False}],
    "isotonic": [
        {"strict": True, "epsilon": 0.01},
        {"strict": True, "epsilon": 0.3, "interpolate": True},
        {"interpolate": True, "smoothing": 4.0},
        {"smoothing": 0.0},
    ],
    "spline": [{"knots": 3}, {"knots": 9, "along": "rank"}, {"knots": 5, "along": "deviation"}],
    "venn-abers": [{"folds": 3}, {"loss": "brier"}, {"unit": 0.25}, {"folds": 2, "loss": "brier", "unit": 5.0}],
}
CLASSES = {
    CentredIsotonic: [{"smoothing": 0.0}, {"smoothing": 0.25}, {"smoothing": 8.0}],
    LogitSpline: [
        {"knots": 3, "strength": 1e-3},
        {"knots": 5, "strength": 10.0},
        {"knots": 7, "monotone": False},
        {"clip": 2.0},
        {"smooth_targets": 2.0},
        {"smooth_targets": False, "strength": 0.1},
    ],
    QuadraticScaling: [
        {"strength": 0.0},
        {"strength": 50.0},
        {"monotone": False},
        {"clip": 1.5},
        {"smooth_targets": 2.0},
        {"smooth_targets": False},
    ],
    Binning: [
        {"edges": "equal_mass", "bins": 3, "smoothing": 2.0},
        {"edges": "equal_width", "bins": 4, "monotone": True},
        {"edges": "imax", "bins": 5, "affine": False},
        {"edges": "imax", "bins": 5, "random_state": 3, "smoothing": 0.0},
        {"edges": "mi", "bins": 4, "representatives": "mean_score"},
        {"edges": "kmeans", "bins": 3},
        {"edges": [0.0, 0.2, 0.21, 0.7, 1.0], "smoothing": 0.5},
        {"edges": "equal_mass", "bins": 4, "monotone": True, "smoothing": 0.0},
    ],
}
MANY = {
    "bts": [{"bins": 2}, {"bins": 7}],
    "ets": [{"loss": "brier"}, {"loss": "nll"}],
    "ts": [{"loss": "brier"}],
    "gp": [{"points": 3}, {"points": 6, "variance": 2.0}, {"length": 0.5}],
    "iop": [{"form": form, "smoothness": s} for form in ("order-invariant", "diagonal") for s in (None, 0.0, 3.0)]
    + [{"temperature": 2.0}],
    "matrix": [
        {"regularisation": regularisation, "strength": strength, "intercepts": intercepts}
        for regularisation, strength, intercepts in (
            ("l2", 0.0, "average"),
            ("l2", 2.0, "origin"),
            ("odir", 0.5, "average"),
            ("odir", "cv", "origin"),
            ("l2", "cv", "average"),
        )
    ],
    "dirichlet-odir": [{"strength": 0.1, "intercepts": "origin"}, {"regularisation": "l2", "strength": 1.0}],
    "vector": [{"strength": 0.0}, {"strength": "cv"}, {"strength": 5.0}],
}


def answers(make, z, y, w):
    """Return what a map answers to its rows and beyond them, and its losses."""
    fitted = make().fit(z, y, sample_weight=w)
    report, k = fitted.fit_report_, z.shape[1]
    more = np.concatenate([z[:3], 30.0 * np.eye(k), np.zeros((1, k))])
    return {
        "p": fitted.predict_proba(more).tolist(),
        "all": fitted.predict_proba(z),
        "count": fitted.n_parameters_,
        "report": [report.loss_before, report.loss_after, report.held_out_after, report.held_out_error],
    }


def shown(given):
    """Return settings as a name."""
    return ", ".join(f"{name} {value}" for name, value in given.items())


@pytest.mark.parametrize("name", BINARY)
def test_maps_of_one_event(name):
    for given in BINARY[name]:
        found = {}
        for of, (z, y), w in (("events", EVENTS, None), ("far", FAR, W[:110]), ("sure", SURE, None)):
            if (name, of) in (("beta", "sure"), ("platt", "sure")) and not given.get("smooth_targets", True):
                continue  # separable: a search along a flat
            found[of] = answers(lambda given=given: registry.make(name, **given), z, y, w)
        check("settings", f"{name}: {shown(given)}", found)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_maps_of_one_class_at_a_time(kind):
    for given in CLASSES[kind]:
        found = {"shared": answers(lambda given=given: OneVsRest(kind(**given), share="all"), Z, Y, W)}
        found["own"] = answers(lambda given=given: OneVsRest(kind(**given)), Z, Y, None)
        found["far"] = answers(lambda given=given: OneVsRest(kind(**given)), *FAR, W[:110])
        check("settings", f"{kind.__name__}: {shown(given)}", found)


@pytest.mark.parametrize("name", MANY)
def test_maps_of_classes(name):
    for given in MANY[name]:
        found = {"weights": answers(lambda given=given: calibrant.make(name, **given), Z, Y, W)}
        check("settings", f"{name}: {shown(given)}", found)


def kinds(kind=Calibrator):
    """Return every class of maps of ours."""
    found = {kind} if kind.__module__.startswith("calibrant.") else set()
    return found.union(*map(kinds, kind.__subclasses__()))


def test_parameters_and_files_may_be_what_they_might():
    """Wider ranges let in what crashes, narrower ones refuse what was saved."""
    for name in registry.names():
        registry.make(name)
    found = {}
    for kind in sorted(kinds(), key=lambda kind: f"{kind.__module__}.{kind.__qualname__}"):
        place = kind.__module__.rsplit(".", 1)[-1] + "." + kind.__qualname__
        for table in ("_constraints", "_state"):
            for name, rule in (vars(kind).get(table) or {}).items():
                told = rule.allowed if table == "_constraints" else re.sub(r" at 0x\w+", "", repr(rule))
                found[f"{place} {table} {name}"] = [told[i : i + 15] for i in range(0, len(told), 15)]
    check("settings", "promises", found, more=True)
