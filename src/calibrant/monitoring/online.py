"""Recalibration that learns from every label as it arrives: online Platt scaling with calibeating."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from ..errors import FileProblem, InvalidInput, count_of
from ..parameters import Number, is_one_of
from ..types import Array, Integers
from ..validation import (
    as_labels,
    as_probabilities,
    as_weights,
    column_names,
    is_first_of_two,
    order_of,
    refuse_swapped,
)
from .calibeating import Tally
from .saving import digest_of, read_document, write_document

_LEAST = 1e-12  # of a setting: one over it is still a number to reckon with
_NARROWEST = 1e-3  # of a width: there is a cell for every two of so many places
KIND, FORMAT = "calibrant online recalibration", 1
TINY = 1e-12  # a probability of 0 that happened costs log(1e12), not infinity, in the running losses
_MOST = 1e100  # of a number of a state: its square can be computed


@dataclass(frozen=True, eq=False)
class Asked:
    """Answers that wait for their labels: keep it, and pass it to `OnlineRecalibrator.learn` when they arrive.

    Attributes
    ----------
    answers : array of shape (n,)
        The recalibrated probabilities.
    base : array of shape (n,)
        Those of the two or three parameters alone.
    p : array of shape (n,)
        The probabilities as they came.
    columns : tuple or None
        The names of the columns they came in, if any.
    """

    answers: Array
    base: Array
    p: Array
    columns: tuple[Any, ...] | None = None


class OnlineRecalibrator:
    """Platt's two parameters, or beta's three, moved a little by every label (Gupta & Ramdas 2023).

    An online Newton step: with u = (log-odds, 1), q = σ(θ·u) and g = (q - y)·u, A ← A + g·gᵀ and θ ← θ - A⁻¹g/γ. It
    follows a drift, and costs a little where there is none. The order of rows matters, so states cannot be merged.

    Parameters
    ----------
    answer : {"ops", "tops", "hops", "hedged"}
        "ops": σ(θ·u). "tops": the mean outcome so far among rows with about this answer. "hops": the same, drawn
        between two neighbours where needed, calibrated against any sequence. "hedged": p itself, ops and tops, mixed
        by how well each did so far: in sum never worse than the best of them by more than log 3.
    features : {"platt", "beta"}
        "beta": u = (log p, -log(1-p), 1).
    rate, ridge, radius, clip : float
        γ, A's first diagonal, the largest ‖θ‖, and into what range p is clipped. The defaults are the authors'.
    width : float
        Of the bins of tops and hops.
    alpha : float
        At what level `refit` speaks.
    random_state : int
        For "hops".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.monitoring import OnlineRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(2, 3, 2000)
    >>> online = OnlineRecalibrator()
    >>> q = online.step(rng.random(2000) < p**2, p)
    >>> online.gain > 0.02, online.refit
    (True, True)
    """

    def __init__(
        self,
        answer: str = "ops",
        *,
        features: str = "platt",
        rate: float = 0.1,
        ridge: float = 100.0,
        radius: float = 100.0,
        clip: float = 0.01,
        width: float = 0.1,
        alpha: float = 0.05,
        random_state: int = 0,
    ) -> None:
        _choice("answer", answer, ("ops", "tops", "hops", "hedged"))
        _choice("features", features, ("platt", "beta"))
        limits = {"rate": (rate, 10), "ridge": (ridge, 1e9), "radius": (radius, 1e6), "clip": (clip, 0.5)}
        for name, (value, most) in (limits | {"width": (width, 0.5), "alpha": (alpha, 1)}).items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            least = _NARROWEST if name == "width" else _LEAST
            if not number or not least <= value <= most or (name == "alpha" and value == 1):
                allowed = f"{least:g} to {most:g}"
                raise InvalidInput(f"{name} cannot be used", seen=repr(value)[:40], allowed=allowed)
        if not isinstance(random_state, (int, np.integer)) or not 0 <= random_state < 2**63:
            raise InvalidInput("random_state cannot be used", seen=repr(random_state)[:40], allowed="a whole number")
        self.answer, self.features, self.clip, self.alpha = answer, features, clip, alpha
        self.rate, self.ridge, self.radius, self.width, self.random_state = rate, ridge, radius, width, random_state
        self.start = np.array([1.0, 0.0]) if features == "platt" else np.array([1.0, 1.0, 0.0])
        self.theta = self.start.copy()
        self._curve = ridge * np.eye(len(self.theta))
        self._tally = Tally.new(width)
        self._sums = _Sums(np.zeros(len(self.theta)))

    def ask(self, p: Any) -> Asked:
        """Return answers for probabilities of an event, to be learnt from when their labels are there."""
        return replace(self._ask(_event(p)), columns=column_names(p))

    def predict(self, p: Any) -> Array:
        """Return the recalibrated probabilities."""
        return self.ask(p).answers

    def learn(self, y: Any, asked: Asked, *, sample_weight: Any = None) -> OnlineRecalibrator:
        """Take the labels of what was asked, whenever they arrive, and return self.

        Weights multiply the gradient, so that A grows by w²; losses and tallies by w.
        """
        labels = _outcomes(y, len(asked.p), asked.columns)
        weights = as_weights(sample_weight, len(labels))
        for i, label in enumerate(labels.tolist()):
            w = 1.0 if weights is None else float(weights[i])
            self._learn(float(label), float(asked.p[i]), float(asked.base[i]), float(asked.answers[i]), w)
        return self

    def step(self, y: Any, p: Any, *, sample_weight: Any = None) -> Array:
        """Answer each row and learn from its label before the next one; return the answers."""
        refuse_swapped(y, p)
        values = _event(p)
        labels = _outcomes(y, len(values), column_names(p))
        weights = as_weights(sample_weight, len(labels))
        found = np.empty(len(values))
        for i, label in enumerate(labels.tolist()):
            asked = self._ask(values[i : i + 1])
            found[i] = asked.answers[0]
            w = 1.0 if weights is None else float(weights[i])
            self._learn(float(label), float(values[i]), float(asked.base[0]), found[i], w)
        return found

    def _features(self, p: Array) -> Array:
        q = np.clip(p, self.clip, 1 - self.clip)
        low, high = np.log1p(-q), np.log(q)
        parts = [high - low, np.ones_like(q)] if self.features == "platt" else [high, -low, np.ones_like(q)]
        return np.stack(parts, axis=-1)

    def _ask(self, p: Array) -> Asked:
        base = expit(self._features(p) @ self.theta)
        if self.answer == "ops":
            return Asked(base, base, p)
        if self.answer == "tops":
            return Asked(self._tally.tops(base), base, p)
        if self.answer == "hops":
            at = [0, 0, 0, self._sums.asked]
            draws = np.random.Generator(np.random.Philox(key=self.random_state, counter=at)).random(len(p))
            self._sums.asked += len(p)
            return Asked(self._tally.hops(base, draws), base, p)
        losses = np.array([self._sums.raw, self._sums.base, self._sums.tops])
        trust = np.exp(losses.min() - losses)
        parts = np.stack([np.clip(p, TINY, 1 - TINY), base, self._safe_tops(base)])
        return Asked(trust @ parts / trust.sum(), base, p)

    def _safe_tops(self, base: Array) -> Array:
        return np.clip(self._tally.tops(base), self.clip, 1 - self.clip)

    def _learn(self, y: float, p: float, base: float, answered: float, w: float) -> None:
        if w == 0:
            return
        sums = self._sums
        sums.rows, sums.weight = sums.rows + 1, sums.weight + w
        sums.raw += w * _loss(y, p)
        sums.base += w * _loss(y, base)
        sums.tops += w * _loss(y, float(self._safe_tops(np.array([base]))[0]))
        sums.answered += w * _loss(y, answered)
        sums.highest = max(sums.highest, sums.raw - sums.base)
        u = self._features(np.array([p]))[0]
        g = (
            w * (float(expit(u @ self.theta)) - y) * u
        )  # where θ is now: a gradient from when it was asked would run away
        sums.slope += float(g @ (self.theta - self.start))
        sums.gradient = sums.gradient + g
        self._curve = self._curve + np.outer(g, g)
        self.theta = self._inside(self.theta - np.linalg.solve(self._curve, g) / self.rate)
        self._tally.add(base, answered, y, w)

    def _inside(self, theta: Array) -> Array:
        """Return the point of the ball that is nearest in A's norm: (A + μI)⁻¹Aθ with ‖·‖ = radius."""
        if np.linalg.norm(theta) <= self.radius:
            return theta
        one, aim = np.eye(len(theta)), self._curve @ theta
        low, high = 0.0, float(np.linalg.norm(aim)) / self.radius
        for _ in range(100):  # halves to the last bit
            middle = (low + high) / 2
            far = np.linalg.norm(np.linalg.solve(self._curve + middle * one, aim)) > self.radius
            low, high = (middle, high) if far else (low, middle)
        return np.asarray(np.linalg.solve(self._curve + high * one, aim), dtype=np.float64)

    @property
    def rows(self) -> int:
        """How many labels were learnt from."""
        return self._sums.rows

    @property
    def gain(self) -> float:
        """How much lower the log-loss a row of the answers is than that of p itself, so far."""
        return (self._sums.raw - self._sums.answered) / max(self._sums.weight, 1e-300)

    @property
    def log_e(self) -> float:
        """The evidence against p itself: the likelihood ratio of the answers given before each label (an e-process)."""
        return self._sums.raw - self._sums.base

    @property
    def refit(self) -> bool:
        """Whether p itself is proved wrong, at level alpha over any length of time: when to refit the map for good."""
        return self._sums.highest >= math.log(1 / self.alpha)

    def regret_bound(self, distance: float = 1.0) -> float:
        """Return a bound on the log-loss so far over that of any fixed θ within this distance of (1, 0).

        Losses are convex in θ, so Σ loss(θ_t) - Σ loss(θ) ≤ Σ g_t·(θ_t - θ) = Σ g_t·(θ_t - θ_1) + (θ_1 - θ)·Σ g_t,
        whose second term is at most distance·‖Σ g_t‖. It is computed from this very stream and needs no assumption
        about it, as long as labels come one by one (`step`); it is about "ops". In theory it grows like log n.
        """
        if not Number(0).accepts(distance):
            raise InvalidInput("distance cannot be used", seen=repr(distance)[:80], allowed="at least 0")
        return self._sums.slope + distance * float(np.linalg.norm(self._sums.gradient))

    def advice(self) -> str:
        """Return what to do, in words."""
        if not self.refit:
            level = f"log E {self.log_e:+.1f}, {math.log(1 / self.alpha):.1f} would"
            return f"Go on: {count_of(self.rows, 'label')} cannot prove the probabilities wrong ({level})."
        told = ", ".join(f"{value:.3g}" for value in self.theta)
        return (
            f"Refit the map: its probabilities are proved wrong, and recalibrating online saves {self.gain:.4f} a row. "
            f"Until then the answers here serve (θ = {told})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain values for JSON."""
        names = ("answer", "features", "rate", "ridge", "radius", "clip", "width", "alpha", "random_state")
        body = {
            "settings": {name: getattr(self, name) for name in names},
            "theta": self.theta.tolist(),
            "curve": self._curve.tolist(),
            "came": self._tally.came.tolist(),
            "seen": self._tally.seen.tolist(),
            "sums": asdict(self._sums) | {"gradient": self._sums.gradient.tolist()},
        }
        return {"kind": KIND, "format": FORMAT, "digest": digest_of(body), **body}

    @classmethod
    def from_dict(cls, document: Any) -> OnlineRecalibrator:
        """Return what `to_dict` described; what it cannot have written is refused."""
        try:
            body = {key: value for key, value in document.items() if key not in ("kind", "format", "digest")}
            if document["kind"] != KIND or document["format"] != FORMAT or document["digest"] != digest_of(body):
                raise FileProblem("this is no saved online recalibration, or it was changed since")
            found = cls(**body["settings"])
            d = len(found.theta)
            found.theta = _numbers(body["theta"], (d,))
            found._curve = _numbers(body["curve"], (d, d))
            found._tally = Tally(*(_numbers(body[name], found._tally.seen.shape) for name in ("came", "seen")))
            sums = dict(body["sums"])
            found._sums = _Sums(_numbers(sums.pop("gradient"), (d,)), **sums)
            found._refuse_nonsense()
        except FileProblem:
            raise
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise FileProblem("this is no saved online recalibration", seen=str(error)[:80]) from error
        return found

    def _refuse_nonsense(self) -> None:
        s, tally = self._sums, self._tally
        told = [s.weight, s.raw, s.base, s.tops, s.answered, s.highest, s.slope]
        good = all(isinstance(v, (int, float)) and abs(v) < _MOST for v in told)
        good = good and all(isinstance(v, int) and v >= 0 for v in (s.rows, s.asked))
        good = good and bool((tally.came >= 0).all() and (tally.came <= tally.seen + 1e-9).all())
        good = good and float(np.linalg.norm(self.theta)) <= self.radius * (1 + 1e-9)
        good = good and bool(np.allclose(self._curve, self._curve.T))
        good = good and float(np.linalg.eigvalsh(self._curve)[0]) >= self.ridge * (1 - 1e-6)
        if not good:
            raise FileProblem("this is no online recalibration that calibrant saved: its numbers contradict each other")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write settings and state as JSON; the file is replaced atomically."""
        write_document(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OnlineRecalibrator:
        """Read what `save` wrote, and go on."""
        return cls.from_dict(read_document(path))

    def __repr__(self) -> str:
        told = ", ".join(f"{value:.3g}" for value in self.theta)
        return f"<OnlineRecalibrator {self.answer}: {count_of(self.rows, 'label')}, θ = {told}>"


@dataclass(eq=False)
class _Sums:
    """Running sums: losses of p, of θ, of tops and of the answers; and what the regret bound needs."""

    gradient: Array
    rows: int = 0
    asked: int = 0
    weight: float = 0.0
    raw: float = 0.0
    base: float = 0.0
    tops: float = 0.0
    answered: float = 0.0
    highest: float = 0.0
    slope: float = 0.0


def _loss(y: float, q: float) -> float:
    return -math.log(max(q if y == 1 else 1 - q, TINY))


def _event(p: Any) -> Array:
    values = np.asarray(as_probabilities(p, "p").values, dtype=np.float64)
    if values.ndim == 2 and values.shape[1] == 2:
        values = values[:, 1]
    if values.ndim == 2:
        raise InvalidInput(
            "online recalibration is for the probability of one event",
            seen=f"{values.shape[1]} columns",
            hint="recalibrate each class, or the most probable one, by itself",
        )
    return values


def _outcomes(y: Any, n: int, columns: tuple[Any, ...] | None) -> Integers:
    """Return labels of which the second is the event; columns whose names say that it is the first are refused."""
    labels, known = as_labels(y, 2, n)
    order = None if columns is None else order_of(columns, known.tolist())
    if is_first_of_two(columns, known, "p") or (order is not None and order[0] == 1):
        raise InvalidInput(
            "online recalibration is for the probability of the second label, and the columns say the first's",
            seen=", ".join(map(str, columns or ())),
            allowed=f"that of {known.tolist()[1]!r}",
            hint="pass outcomes 0 and 1, and the event's probability as an array",
        )
    return labels


def _choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not is_one_of(value, allowed):
        raise InvalidInput(f"{name} is not known", seen=repr(value)[:40], allowed=", ".join(allowed))


def _numbers(values: Any, shape: tuple[int, ...]) -> Array:
    found = np.asarray(values, dtype=np.float64)
    if found.shape != shape or not (np.abs(found) < _MOST).all():
        raise ValueError("a list of another size, or without numbers that can be computed with")
    return found
