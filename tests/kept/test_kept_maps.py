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


SETS = {
    "four classes": (*classes(300, 4, 0), None),
    "weights": weighted(1),
    "one event": (*classes(250, 2, 2), None),
    "alike": (classes(90, 3, 3)[0] / 50, np.arange(90) % 3, None),
}
SLOW = {"kcal", "kcal-linear", "kcal-logits", "blend"}  # one set is enough


def told(fitted, z):
    """Answers to a few rows, common and extreme, and what the report has in numbers."""
    k = z.shape[1]
    rows = np.concatenate([z[:3], 40.0 * np.eye(k)[:1], np.zeros((1, k))])
    report = fitted.fit_report_
    losses = (report.loss_before, report.loss_after, report.held_out_after, report.held_out_error)
    return {"p": fitted.predict_proba(rows).tolist(), "losses": list(losses), "converged": report.converged}


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize(
    ("name", "of"), [(name, of) for name in registry.names() for of in SETS if name not in SLOW or of == "weights"]
)
def test_a_map_answers_as_it_did(name, of):
    z, y, w = SETS[of]
    check("maps", f"{name}, {of}", told(calibrant.make(name).fit(z, y, sample_weight=w), z))
