"""States as plain values, of metrics, monitors and online maps, forged with true digests: each is refused, or sound."""

from __future__ import annotations

import copy
import json
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.errors import CalibrantError
from calibrant.metrics.measuring import Measuring
from calibrant.metrics.state import State, state
from calibrant.monitoring import Monitor, OnlineRecalibrator, Pending
from calibrant.monitoring.saving import digest_of

from .harness import Finding, attempt
from .saved import places

Rng = np.random.Generator
ROOM = Path(tempfile.mkdtemp(prefix="calibrant-fuzz-"))
VALUES = [
    None,
    True,
    -1,
    0,
    1,
    2.5,
    -5.0,
    1e300,
    1e-320,
    2**70,
    float("nan"),
    float("inf"),
    "x",
    [],
    {},
    [[1.0]],
    ["a"],
]


@cache
def rows() -> tuple[Any, Any]:
    """Return labels and probabilities of a few rows."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 40)
    return np.where(rng.random(40) < 0.6, p.argmax(axis=1), rng.integers(0, 3, 40)), p


@cache
def documents() -> dict[str, tuple[dict[str, Any], Callable[[Any], Any]]]:
    """Return what each kind of state writes, and what reads it again and asks it."""
    y, p = rows()
    found: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {}
    for name in ("ece", "cwece", "brier", "nll", "smece", "ece_debiased", "accuracy", "ks_error"):
        kept = state(name).update(y, p).to_dict()
        a_mean = kept["kind"] == "moments"  # of any numbers, as far as a state knows
        found[name] = (kept, lambda given, any_sign=a_mean: _figure(State.from_dict(given).finalise(), any_sign))
    event = (y == 2).astype(int)
    for name in ("auroc", "scaled_brier", "calibration_slope"):
        told = state(name).update(event, p[:, 2]).to_dict()
        found[name] = (told, lambda given: _figure(State.from_dict(given).finalise(), any_sign=True))
    quick = Measuring(resamples=19).update(y, p).to_dict()
    found["measuring"] = (quick, lambda given: str(Measuring.from_dict(given).finalise()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monitor = Monitor().update(y, p).to_dict()
        online = OnlineRecalibrator()
        online.step(event, p[:, 2])
    found["monitor"] = (monitor, _watch)
    found["online"] = (online.to_dict(), _answer)
    pending = Pending()
    pending.predicted(["a", "b"], p[:2], label="first")
    pending.labelled(["b"], [1])
    pending.predicted([1, 2], p[2:4], groups=["x", "y"], sample_weight=[1.0, 2.0])
    pending.save(ROOM / "saved.json")
    found["pending"] = (json.loads((ROOM / "saved.json").read_text()), _wait)
    for told, ask in found.values():
        ask(json.loads(json.dumps(told)))  # as it was written it is read
    return found


def case(rng: Rng) -> str:
    """Forge a state, read it, and ask it."""
    names = sorted(documents())
    name = names[rng.integers(len(names))]
    document, ask = documents()[name]
    forged = copy.deepcopy(document)
    for _ in range(rng.integers(1, 4)):
        _spoil(rng, forged)
    if "digest" in forged:
        body = {key: value for key, value in forged.items() if key not in ("kind", "format", "digest")}
        forged["digest"] = attempt(lambda: digest_of(body), (CalibrantError, ValueError, TypeError))
    forged = json.loads(json.dumps(forged, default=str))
    attempt(lambda: ask(forged))
    return name


def _spoil(rng: Rng, document: dict[str, Any]) -> None:
    found = places(document, [])
    if not found:
        return
    container, key = found[rng.integers(len(found))]
    kind = rng.integers(4)
    if kind == 0 and isinstance(container, (dict, list)):
        del container[key]
    elif kind == 1 and isinstance(container[key], (int, float)):
        container[key] = container[key] * float(rng.choice([-1.0, 0.5, 1e6]))
    elif kind == 2:
        other = found[rng.integers(len(found))]
        container[key] = copy.deepcopy(other[0][other[1]])
    else:
        container[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])


def _figure(value: float, any_sign: bool = False) -> float:
    if np.isnan(value) or (value < -1e-9 and not any_sign):
        raise Finding(f"a figure of {value}")
    return value


def _watch(given: Any) -> Any:
    y, p = rows()
    monitor = Monitor.from_dict(given)
    str(monitor.findings() if callable(monitor.findings) else monitor.findings)
    monitor.update(y, p)
    if np.isnan(monitor.log_e):
        raise Finding("a monitor's evidence is NaN")
    return monitor


def _answer(given: Any) -> Any:
    y, p = rows()
    online = OnlineRecalibrator.from_dict(given)
    for answer in (online.predict(p[:, 2]), online.step((y == 2).astype(int), p[:, 2])):
        if not ((answer >= 0) & (answer <= 1)).all():
            raise Finding(f"an online map answers {answer.min()} to {answer.max()}")
    if np.isnan([online.gain, online.log_e, online.regret_bound()]).any():
        raise Finding("an online map's figures are NaN")
    return f"{online.advice()} {online!r}"


def _wait(given: Any) -> Any:
    (ROOM / "forged.json").write_text(json.dumps(given))
    pending = Pending.load(ROOM / "forged.json")
    before = pending.waiting
    pending.feed(Monitor(), close="drop")
    if not 0 <= pending.waiting <= before or pending.lost < 0:
        raise Finding(f"{before} rows waited, then {pending.waiting}")
    return pending
