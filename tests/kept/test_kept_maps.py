"""What each registered map answers to a few rows, and what its report says, is what it was."""

import numpy as np
import pytest
from tests.kept.comparing import check

import calibrant
from calibrant import registry


def classes(n, k, seed):
    """Scores that are too sure of themselves, and of some classes more than of others; some tie."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(n, k)) * 1.5
    y = (true + rng.gumbel(size=(n, k))).argmax(axis=1)
    return np.round(2.0 * true + np.linspace(-0.5, 0.5, k), 2), y


def weighted(seed):
    z, y = classes(160, 3, seed)
    return z, y, np.random.default_rng(seed).exponential(size=160) + 0.1


def ruled_out(seed):
    """Rows of which some rule classes out, and a model that is nearly always right."""
    z, y = classes(200, 4, seed)
    z = np.where(np.eye(4)[y] > 0, z + 4.0, z)
    z[np.arange(0, 200, 5), (y[::5] + 1) % 4] = -np.inf
    return z, y


def rare(seed):
    """Many classes, most of them rare, and doubled rows."""
    z, y = classes(260, 9, seed)
    z, y = z + np.linspace(0, 5, 9), np.where(y < 6, y, 0)
    return np.r_[z, z[:60]], np.r_[y, y[:60]]


def enormous(seed):
    """Some rows whose scores are a thousand million times as large as those of the others, and not always right."""
    z, y = classes(150, 3, seed)
    z[::9] *= 1e9
    return z, y


SETS = {
    "four classes": (*classes(300, 4, 0), None),
    "weights": weighted(1),
    "one event": (*classes(250, 2, 2), None),
    "alike": (classes(90, 3, 3)[0] / 50, np.arange(90) % 3, None),
    "few rows": (*classes(14, 3, 4), None),
    "ruled out": (*ruled_out(5), None),
    "rare classes": (*rare(6), None),
    "enormous": (*enormous(8), None),
    "tiny": (classes(120, 4, 9)[0] * 1e-9, classes(120, 4, 9)[1], None),
    "one row": (*classes(1, 3, 10), None),
    "two rows": (classes(2, 2, 11)[0], np.array([1, 0]), None),
    "three rows": (*classes(3, 3, 12), None),
    "five rows": (*classes(5, 2, 13), np.array([1.0, 2.0, 0.0, 0.5, 3.0])),
    "single precision": (classes(280, 3, 7)[0].astype(np.float32), classes(280, 3, 7)[1], None),
}
# What a sum taken in another order decides: a tie, or the last step of a search along a flat.
BY_ROUNDING = {
    *((name, "tiny") for name in ("platt", "platt-s", "beta", "beta-s", "imax-platt", "imax-beta")),
    ("beta", "two rows"),
    ("mi-binning", "few rows"),
    *(("imax-cw", of) for of in ("one event", "enormous", "two rows", "five rows")),
}
SLOW = {"kcal", "kcal-linear", "kcal-logits", "blend"}  # one set is enough


def told(fitted, z):
    """Answers to rows, common and extreme, and what the report has in numbers: how many passes a fit took as well."""
    k = z.shape[1]
    rows = np.concatenate([z[:3], 40.0 * np.eye(k)[:1], np.zeros((1, k))])
    report = fitted.fit_report_
    losses = (report.loss_before, report.loss_after, report.held_out_after, report.held_out_error)
    return {
        "p": fitted.predict_proba(rows).tolist(),
        "losses": list(losses),
        "converged": report.converged,
        "every row": fitted.predict_proba(z),
        "labels": fitted.predict(z).astype(int),
        "passes": report.iterations,
        "held out": [report.held_out_before, report.held_out_pvalue],
        "said": [len(report.at_bound), len(report.messages), bool(report.caveat)],
        "details": {name: value for name, value in report.details.items() if isinstance(value, (bool, int, float))},
    }


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize(
    ("name", "of"),
    [
        (name, of)
        for name in registry.names()
        for of in SETS
        if (name not in SLOW or of == "weights") and (name, of) not in BY_ROUNDING
    ],
)
def test_a_map_answers_as_it_did(name, of):
    z, y, w = SETS[of]
    check("maps", f"{name}, {of}", told(calibrant.make(name).fit(z, y, sample_weight=w), z))
