"""What every way to ship a map is compared on: fitted maps of the registry, and rows at their worst."""

import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np

from calibrant import make
from calibrant.arrays import softmax
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
        rows = softmax(rows)
    parameters = {} if name in ("kcal", "kcal-linear") else {"inputs": inputs}
    return quietly(make(name, **parameters), rows, y)


def hard_rows(name, kind="float64"):
    """Rows that a map must not stumble over; those it was fitted on are among them."""
    z, _ = scores_of(name)
    k = z.shape[1]
    if name in ("kcal", "kcal-linear"):
        return z[:60].astype(kind)
    rng = np.random.default_rng(1)
    rows = [z[:60], rng.normal(size=(30, k)) * 8, rng.normal(size=(6, k)) * 300]
    special = np.zeros((6, k))
    special[1, 0] = -np.inf
    special[2, :-1] = -np.inf
    special[3] = np.arange(k) * 1e-9
    special[4, 1] = 1e4
    special[5] = [50.0, 50.0, *([-40.0] * (k - 2))]
    return np.concatenate([*rows, special]).astype(kind)


ALL = names()
# Maps on all of which a class that is masked out acts in a way of its own: alone, lifted, behind another, mixed.
MASKED = ["ts", "platt", "vector", "irova", "irova-ets", "ets > vector", "ets > platt", "sms", "blend"]
CURVES = ["isotonic-s", "irova", "irm", "irova-ts", "irova-ets", "irm-ts", "isotonic-centred", "venn-abers", "spline"]


@cache
def masked(name):
    """A map that leaves masked classes at zero, and the rows it was fitted on: in a third a class is masked out."""
    z, y = problem()
    z = z.copy()
    z[::3, 2] = -np.inf
    y = np.where(np.isneginf(z[np.arange(len(y)), y]), 0, y)
    calibrator = quietly(make(name, saturated="exact"), z, y)
    only = np.full((1, K), -np.inf)
    only[0, 1] = 0.0
    return calibrator, np.concatenate([z[:60], only])


UNIT = 2.0**-24  # what float32 numbers just below one are apart
SHIPPING = Path(__file__).resolve().parents[2] / "docs" / "shipping.md"


@cache
def stated():
    """How far every map may be from predict_proba in single precision, in units: as docs/shipping.md says."""
    table = re.findall(r"^\| (\d+) \| (`.*`) \|$", SHIPPING.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: int(units) for units, line in table for name in re.findall(r"`([^`]+)`", line)}


def tolerance(name, kind):
    """How far a shipped map may be from predict_proba."""
    return 1e-12 if kind == "float64" else stated()[name] * UNIT
