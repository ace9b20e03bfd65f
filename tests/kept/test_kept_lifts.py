"""What maps of one event say of several classes, one class at a time and in groups of them, is what it was."""

import numpy as np
import pytest
from tests.kept.comparing import check
from tests.kept.test_kept_maps import SETS

import calibrant
from calibrant import registry

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
TOGETHER = ("none", "all", "prior", [[0, 1], [2, 3]], [[0], [1, 2, 3]])
LIFTED = {
    "chain": calibrant.Chain([calibrant.PlattScaling(), calibrant.Isotonic()]),
    "mixture": calibrant.Mixture([calibrant.PlattScaling(), calibrant.BetaCalibration()]),
    "platt": calibrant.PlattScaling(),
    "isotonic": calibrant.Isotonic(),
    "venn-abers": calibrant.VennAbers(),
    "bins": calibrant.Binning(edges="equal_mass", bins=5),
    "spline": calibrant.SplineCalibration(),
}


@pytest.mark.parametrize("name", LIFTED)
@pytest.mark.parametrize("of", ["four classes", "weights", "one event"])
def test_groups_of_classes(name, of):
    z, y, w = SETS[of]
    for share in TOGETHER if z.shape[1] == 4 else TOGETHER[:2]:
        fitted = calibrant.OneVsRest(LIFTED[name], share=share).fit(z, y, sample_weight=w)
        found = {
            "p": fitted.predict_proba(z),
            "marginals": fitted.predict_marginals(z),
            "parameters": fitted.n_parameters_,
            "groups": fitted.groups_,
            "losses": [fitted.fit_report_.loss_after, fitted.fit_report_.held_out_after],
        }
        if name == "venn-abers":
            found["interval"] = fitted.predict_interval(z)
        check("lifts", f"{name}, {of}, {share}", found)


def test_maps_have_so_many_parameters():
    z, y, w = SETS["weights"]
    for name in registry.names():
        if name in ("blend", "kcal", "kcal-linear", "kcal-logits"):
            continue
        fitted = calibrant.make(name).fit(z, y, sample_weight=w)
        traits = fitted.traits
        said = {key: getattr(traits, key) for key in ("preserves", "sees", "needs") if hasattr(traits, key)}
        check("lifts", f"parameters of {name}", {"count": fitted.n_parameters_, **said})


@pytest.mark.parametrize("of", ["four classes", "weights"])
def test_one_row_at_a_time(of):
    """Answers are those of a row alone, in whatever order and company."""
    z, y, w = SETS[of]
    for name in registry.names():
        if name in ("blend", "kcal", "kcal-linear", "kcal-logits"):
            continue
        fitted = calibrant.make(name).fit(z, y, sample_weight=w)
        p = fitted.predict_proba(z[:30])
        np.testing.assert_allclose(np.vstack([fitted.predict_proba(row[None]) for row in z[:3]]), p[:3], atol=1e-12)
        np.testing.assert_allclose(fitted.predict_proba(z[:30][::-1]), p[::-1], atol=1e-12)
        if name == "hoki":  # whose label is the scores' own, however low its confidence
            continue
        clear = (p == p.max(axis=1, keepdims=True)).sum(axis=1) == 1  # of equals the scores decide
        np.testing.assert_array_equal(fitted.predict(z[:30])[clear], fitted.classes_[p.argmax(axis=1)][clear])
