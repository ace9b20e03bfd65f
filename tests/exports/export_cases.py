"""What every way to ship a map is compared on: fitted maps of the registry, and rows at their worst."""

import warnings
from functools import cache

import numpy as np

from calibrant import make
from calibrant.registry import names

K = 4


def quietly(calibrator, *rows):
    """Fit, whatever the map thinks of so few rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calibrator.fit(*rows)


@cache
def problem(kind="float64"):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(420, K)) * 1.5
    y = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    z = 2.2 * truth
    z[:40] = np.round(z[:40])  # ties
    return z.astype(kind), y


def scores_of(name):
    z, y = problem()
    return (z[:, :3], y) if name in ("kcal", "kcal-linear") else (z, y)


@cache
def fitted(name, kind="float64", inputs="logits"):
    z, y = scores_of(name)
    rows = np.asarray(z, dtype=kind)
    if inputs == "probabilities":
        e = np.exp(rows - rows.max(axis=1, keepdims=True))
        rows = (e / e.sum(axis=1, keepdims=True)).astype(kind)
    parameters = {} if name in ("kcal", "kcal-linear") else {"inputs": inputs}
    return quietly(make(name, **parameters), rows, y)


def hard_rows(name, kind="float64"):
    """Rows that a map must not stumble over; those it was fitted on are among them."""
    z, _ = scores_of(name)
    k = z.shape[1]
    if name in ("kcal", "kcal-linear"):
        return z[:60].astype(kind)
    rng = np.random.default_rng(1)
    # A bin of Venn-Abers that holds one score of the fit is as narrow as its last bit, which a sum over classes in
    # another order misses: of more than two classes it is exact on scores that the fit has not seen.
    seen = z[:0] if name == "venn-abers" else z[:60]
    rows = [seen, rng.normal(size=(30, k)) * 8, rng.normal(size=(6, k)) * 300]
    special = np.zeros((6, k))
    special[1, 0] = -np.inf
    special[2, :-1] = -np.inf
    special[3] = np.arange(k) * 1e-9
    special[4, 1] = 1e4
    special[5] = [50.0, 50.0, *([-40.0] * (k - 2))]
    return np.concatenate([*rows, special]).astype(kind)


ALL = names()

# Between two knots of an isotonic map lies as steep a rise as neighbouring scores are close, and scores in single
# precision are known to about 1e-7 of themselves: what follows from that. All others answer to a few units in the last
# place (1.2e-7 in single precision, 2.2e-16 in double).
STEEP = {"irova", "isotonic-s", "irm", "irova-ts", "irova-ets", "irm-ts", "blend", "spline", "isotonic-centred"}


def tolerance(name, kind):
    """How far a shipped map may be from predict_proba."""
    if kind == "float64":
        return 1e-10
    return 2e-4 if name in STEEP else 2e-6
