"""Performance without labels: what calibrated probabilities say they will be right about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput, caution, count_of
from ..parameters import generator
from ..types import Array
from ..validation import as_weights

_Z = 1.959963984540054  # of a 95 % interval
_FEW = 0.5  # share of the rows below which weights leave too few of them
_DRAWS = 200  # of labels, for the spread of the area under the curve


@dataclass(frozen=True)
class Figure:
    """An expected value and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True, eq=False)
class ExpectedPerformance:
    """What to expect of rows without labels.

    Attributes
    ----------
    accuracy, log_loss, brier : Figure
        Intervals are for what these rows' labels will show, were the map of the right form.
    auroc : Figure or None
        Of the second class, for two classes.
    confusion : array of shape (K, K)
        Expected share of the rows by true class (rows) and predicted class (columns).
    confusion_low, confusion_high : arrays of shape (K, K)
        The 95 % interval of each.
    rows : int
    effective_rows : float
        (Σw)² / Σw².
    """

    accuracy: Figure
    log_loss: Figure
    brier: Figure
    auroc: Figure | None
    confusion: Array
    confusion_low: Array
    confusion_high: Array
    rows: int
    effective_rows: float

    def __str__(self) -> str:
        lines = [f"accuracy  {self.accuracy}", f"log-loss  {self.log_loss}", f"Brier     {self.brier}"]
        lines += [f"AUROC     {self.auroc}"] if self.auroc is not None else []
        return "\n".join([*lines, f"{count_of(self.rows, 'row')} without labels, {self.effective_rows:.0f} effective"])


def estimate_performance(
    map: Any, scores: Any, *, sample_weight: Any = None, random_state: int = 0
) -> ExpectedPerformance:
    """Estimate accuracy, log-loss, confusion and area under the curve of rows without labels (CBPE).

    If the probabilities p are true, the accuracy to expect is the mean of p at the predicted class, the log-loss the
    mean entropy, and an event with probability p counts as p of a positive and 1 - p of a negative. Right where inputs
    have shifted but P(label | scores) has not; nothing here can see a shift of that.

    With v the variance of a row's figure were p true and s its share of the weight, a figure varies by Σs²v by the
    chance of its labels and by Σsv/m by that of the m labels the map was fitted to, whose own mean error a map that
    fits them well carries over. A map that does not tell its ``n_samples_`` is taken as known.

    Parameters
    ----------
    map : Calibrator
        Fitted, so that its probabilities are as true as can be; anything with `predict_proba` and `predict`.
    scores : array-like of shape (n, K) or (n,)
    sample_weight : array-like of shape (n,), optional
        As for rows that stand for others. Where they leave few effective rows, it warns.
    random_state : int
        Of the drawn labels behind the interval of the area under the curve.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> map = calibrant.make("platt", inputs="probabilities").fit(p, rng.random(2000) < p**2)
    >>> round(calibrant.estimate_performance(map, rng.random(2000)).accuracy.value, 1)
    0.8
    """
    if not hasattr(map, "predict_proba"):
        raise InvalidInput("estimate_performance needs a fitted map", seen=type(map).__name__)
    if not getattr(map, "_sums_to_one", True):
        raise InvalidInput(
            "estimate_performance is for classes that exclude each other",
            seen=type(map).__name__,
            hint="ask for each label by itself: p expects p events",
        )
    p = np.asarray(map.predict_proba(scores), dtype=np.float64)
    given = as_weights(sample_weight, len(p))
    w = np.ones(len(p)) if given is None else given
    effective = float(w.sum() ** 2 / (w @ w))
    if effective < _FEW * np.count_nonzero(w):
        caution(f"the weights leave {effective:.0f} effective rows of {np.count_nonzero(w)}: the estimates rest on few")
    classes = list(np.asarray(map.classes_).tolist())
    named = {label: k for k, label in enumerate(classes)}
    chosen = np.array([named[label] for label in np.asarray(map.predict(scores)).tolist()])
    share, rows = w / w.sum(), np.arange(len(p))
    right = p[rows, chosen]
    fitted = 1 / max(getattr(map, "n_samples_", np.inf), 1)
    return ExpectedPerformance(
        _figure(share, right, right * (1 - right), fitted, 1.0),
        _log_loss(share, p, fitted),
        _brier(share, p, fitted),
        _auroc(p[:, 1], w, 1 + effective * fitted, random_state) if p.shape[1] == 2 else None,
        *_confusion(share, p, chosen, fitted),
        len(p),
        effective,
    )


def _figure(share: Array, mean: Array, variance: Array, fitted: float, most: float = np.inf) -> Figure:
    """Return Σ s m with the interval of independent labels, of these rows and of the map's: ± z √(Σ s² v + Σ s v/m)."""
    value, error = float(share @ mean), float(np.sqrt(max((share**2 + fitted * share) @ variance, 0.0)))  # of last bits
    return Figure(value, max(value - _Z * error, 0.0), min(value + _Z * error, most))


def _log_loss(share: Array, p: Array, fitted: float) -> Figure:
    """The mean entropy; a row's loss is -log p_k with probability p_k."""
    surprise = -np.log(np.maximum(p, 1e-300))
    mean = (p * surprise).sum(axis=1)
    return _figure(share, mean, (p * surprise**2).sum(axis=1) - mean**2, fitted)


def _brier(share: Array, p: Array, fitted: float) -> Figure:
    """The expected squared distance to the label: Σ p² - 2 p_k + 1 with probability p_k."""
    loss = (p**2).sum(axis=1, keepdims=True) - 2 * p + 1
    mean = (p * loss).sum(axis=1)
    return _figure(share, mean, (p * loss**2).sum(axis=1) - mean**2, fitted)


def _confusion(share: Array, p: Array, chosen: NDArray[Any], fitted: float) -> tuple[Array, Array, Array]:
    """The expected shares by true and predicted class, and their ends.

    Few rows are skewed: the ends are Cornish and Fisher's, moved by (z² - 1)κ/6σ² with κ the third cumulant.
    """
    s, spread = share[:, None], p * (1 - p)
    parts = s * p, (s**2 + fitted * s) * spread, s**3 * spread * (1 - 2 * p)
    value, variance, third = np.zeros((3, p.shape[1], p.shape[1]))
    for total, part in zip((value, variance, third), parts, strict=True):
        np.add.at(total.T, chosen, part)
    reach = _Z * np.sqrt(np.maximum(variance, 0.0))
    centre = value + (_Z**2 - 1) / 6 * third / np.maximum(variance, 1e-300)
    return value, np.maximum(centre - reach, 0.0), np.minimum(centre + reach, 1.0)


def _auroc(p: Array, w: Array, times: float, seed: int) -> Figure | None:
    """The expected area, from pairs that weigh p of a positive and 1 - p of a negative; ties count a half.

    Its variance is that of drawn labels, times what the map's own labels add.
    """
    _, place = np.unique(p, return_inverse=True)
    value = _area(place, w * p, w * (1 - p))
    if not np.isfinite(value):
        return None
    rng = generator(seed)
    drawn = [_area(place, w * y, w * ~y) for y in (rng.random(len(p)) < p for _ in range(_DRAWS))]
    known = np.array([area for area in drawn if np.isfinite(area)])
    if len(known) < _DRAWS // 2:
        return Figure(value, 0.0, 1.0)
    error = float(np.sqrt(times * np.mean((known - known.mean()) ** 2)))
    return Figure(value, max(value - _Z * error, 0.0), min(value + _Z * error, 1.0))


def _area(place: NDArray[Any], positives: Array, negatives: Array) -> float:
    count = int(place.max()) + 1
    up, down = np.bincount(place, positives, count), np.bincount(place, negatives, count)
    pairs = up.sum() * down.sum()
    below = np.cumsum(down) - down
    return float(up @ (below + 0.5 * down) / pairs) if pairs > 0 else float("nan")
