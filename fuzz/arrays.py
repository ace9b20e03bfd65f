"""Maps and metrics on hostile arrays and containers: a distribution or a refusal, nothing changed, the same twice."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import calibrant
from calibrant import metrics, registry

from .harness import Finding, attempt, probabilities, same

Rng = np.random.Generator
QUICK = ("ts", "vector", "irova", "irm-ts", "hb-mass", "hb-width-s", "imax", "platt", "beta-s", "ets", "bts", "uniform")
METRICS = (
    "auroc",
    "scaled_brier",
    "calibration_slope",
    "observed_expected",
    "ece",
    "mce",
    "ace",
    "cwece",
    "ece_debiased",
    "ece_sweep",
    "ks_error",
    "smece",
    "nll",
    "brier",
    "ece_kde",
)
ROOM = Path(tempfile.mkdtemp(prefix="calibrant-fuzz-"))


def case(rng: Rng) -> str:
    """Fit a map and ask it, or measure."""
    scores, y, weights = _problem(rng)
    before = [_bytes(part) for part in (scores, y, weights)]
    name = _measure(rng, scores, y, weights) if rng.random() < 0.4 else _fit(rng, scores, y, weights)
    if [_bytes(part) for part in (scores, y, weights)] != before:
        raise Finding(f"{name} changed its input")
    return name


def _fit(rng: Rng, scores: Any, y: Any, weights: Any) -> str:
    every = registry.names()
    name = str(rng.choice(QUICK) if rng.random() < 0.7 else rng.choice(every))
    inputs = "probabilities" if rng.random() < 0.15 else None

    def made() -> Any:
        fitted = calibrant.make(name, **({"inputs": inputs} if inputs else {}))
        return fitted.fit(scores, y, sample_weight=weights)

    fitted = attempt(made)
    if isinstance(fitted, BaseException):
        return name
    answer = attempt(lambda: fitted.predict_proba(scores))
    if isinstance(answer, BaseException):
        raise Finding(f"{name} refuses the rows it was fitted on: {answer}"[:300])
    probabilities(answer, len(answer), len(fitted.classes_), name)
    str(fitted.fit_report_)
    if rng.random() < 0.2:
        same(answer, attempt(lambda: made().predict_proba(scores)), name)
    return name


def _measure(rng: Rng, scores: Any, y: Any, weights: Any) -> str:
    if isinstance(scores, np.ndarray) and scores.ndim == 2 and scores.shape[1] > 1 and rng.random() < 0.7:
        with np.errstate(all="ignore"):  # mostly probabilities: else most calls are refused at once
            scores = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-1e300))
            scores = scores / scores.sum(axis=1, keepdims=True)
    name = str(rng.choice([*METRICS, "measure"]))
    if name == "measure":
        first = attempt(lambda: str(calibrant.measure(y, scores, sample_weight=weights)))
    else:
        first = attempt(lambda: getattr(metrics, name)(y, scores, sample_weight=weights))
    if isinstance(first, float) and np.isnan(first):
        raise Finding(f"{name} is NaN")
    if isinstance(first, str) and "nan" in first.split():
        raise Finding(f"a measurement says nan: {first[:200]}")
    return name


def _problem(rng: Rng) -> tuple[Any, Any, Any]:
    n = int(rng.choice([0, 1, 2, 3, 5, 12, 30, 60], p=[0.01, 0.04, 0.05, 0.1, 0.2, 0.2, 0.2, 0.2]))
    k = int(rng.choice([1, 2, 3, 4, 7, 17], p=[0.08, 0.3, 0.3, 0.2, 0.08, 0.04]))
    z = _scores(rng, n, k)
    labels = rng.integers(0, max(k, 2), n)
    return _contained(rng, z), _labels(rng, labels), _weights(rng, n)


def _scores(rng: Rng, n: int, k: int) -> np.ndarray[Any, Any]:
    makers: list[Callable[[], Any]] = [
        lambda: rng.normal(size=(n, k)),
        lambda: rng.dirichlet(np.ones(k), n) if k > 1 else rng.random((n, 1)),
        lambda: np.zeros((n, k)),
        lambda: rng.integers(-3, 4, (n, k)).astype(float),
        lambda: rng.normal(size=(n, k)) * 10.0 ** rng.uniform(-310, 300),
        lambda: rng.normal(size=(n, k)) * 10.0 ** rng.uniform(-12, 12),
        lambda: np.where(rng.random((n, k)) < 0.3, -np.inf, rng.normal(size=(n, k))),
        lambda: np.tile([1e-300, -1e-300], (n, k))[:, :k],
        lambda: np.full((n, k), rng.choice([7.5, 1e30, -600.0, 1e-30])),
    ]
    z = makers[rng.choice(len(makers), p=[0.3, 0.15, 0.05, 0.1, 0.1, 0.15, 0.1, 0.02, 0.03])]()
    if z.size and rng.random() < 0.08:
        z.flat[rng.integers(z.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e308])
    return z


def _contained(rng: Rng, z: np.ndarray[Any, Any]) -> Any:
    kind = int(rng.integers(22))
    with np.errstate(all="ignore"):
        if kind < 7:
            return z
        if kind == 7:
            return z.astype(np.float32)
        if kind == 8:
            return z.astype(np.float16)
        if kind == 9:
            return np.asfortranarray(z)
        if kind == 10:
            return np.repeat(z, 2, axis=0)[::2]
        if kind == 11:
            z = z.copy()
            z.flags.writeable = False
            return z
    return _foreign(rng, kind, z)


def _foreign(rng: Rng, kind: int, z: np.ndarray[Any, Any]) -> Any:
    import pandas as pd
    import polars as pl
    import torch

    names = [str(rng.choice(["a", "b", "p_0", "=x()", "<b>"])) + str(i) for i in range(z.shape[1])]
    makers: list[Callable[[], Any]] = [
        lambda: z.tolist(),
        lambda: [row[: int(rng.integers(1, z.shape[1] + 1))] for row in z.tolist()],
        lambda: pd.DataFrame(z, columns=names),
        lambda: pd.DataFrame(z, columns=names).astype("Float64"),
        lambda: pl.DataFrame(z, schema=names) if z.size else z,
        lambda: torch.tensor(z),
        lambda: torch.tensor(z).to(torch.bfloat16),
        lambda: torch.tensor(z).to_sparse(),
        lambda: z[:, 0],
        lambda: _mapped(z),
    ]
    return makers[kind - 12]()


def _mapped(z: np.ndarray[Any, Any]) -> Any:
    if not z.size:
        return z
    path = ROOM / "rows.npy"
    np.save(path, z)
    return np.load(path, mmap_mode="r")


def _labels(rng: Rng, labels: np.ndarray[Any, Any]) -> Any:
    kind = int(rng.integers(14))
    if kind < 7:
        return labels
    makers: list[Callable[[], Any]] = [
        lambda: labels.tolist(),
        lambda: labels.astype(float),
        lambda: labels.astype(str),
        lambda: labels[:, None],
        lambda: np.array([*labels.tolist()[:-1], None], dtype=object),
        lambda: [[1, 2], [3]],
        lambda: np.array([np.array([1, 2])] * len(labels), dtype=object) if len(labels) else labels,
    ]
    return makers[kind - 7]()


def _weights(rng: Rng, n: int) -> Any:
    kind = int(rng.integers(10))
    makers: list[Callable[[], Any]] = [
        lambda: rng.random(n),
        lambda: rng.integers(0, 3, n),
        lambda: np.full(n, 10.0 ** rng.uniform(-300, 300)),
        lambda: np.where(rng.random(n) < 0.5, 1e300, 1e-300),
        lambda: rng.normal(size=n),
        lambda: rng.choice([2.0, "x", None]),
    ]
    return None if kind < 4 else makers[kind - 4]()


def _bytes(value: Any) -> Any:
    """Return what tells whether a value was changed."""
    if isinstance(value, np.ndarray):
        return value.tobytes() if value.dtype != object else repr(value.tolist())
    return repr(value.to_numpy().tolist()) if hasattr(value, "to_numpy") else repr(value)
