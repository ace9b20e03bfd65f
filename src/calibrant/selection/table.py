"""From judgements to the rows of the table: means with standard errors, and paired differences."""

from __future__ import annotations

import numpy as np

from ..errors import InvalidInput
from ..traits import Preserves, Traits, weakest
from ..types import Array
from .evaluate import Judgement
from .problem import Problem
from .result import Estimate, Row


def make_rows(
    found: dict[str, Judgement | str],
    traits: dict[str, Traits],
    judged: Problem,
    metric: str,
    preserve: Preserves,
    gain: bool = False,
) -> tuple[Row, ...]:
    """Return the rows, best first; maps that failed, whose judgement is an error message, come last.

    ``gain`` adds the calibration gain ΔECE² (paper 000, Prop. 4.2): by how much a map lowers the squared loss.
    """
    good = {name: j for name, j in found.items() if isinstance(j, Judgement)}
    eligible = {name: weakest([traits[name].preserves, preserve]) == preserve for name in found}
    if "identity" not in good:
        raise InvalidInput("the scores cannot be judged", seen=str(found["identity"]))
    figures = {name: estimates(j, judged) for name, j in good.items()}
    if gain:
        for name, j in good.items():
            saved = _differences(j, good["identity"], judged)["brier"]
            figures[name]["gain"] = Estimate(0.0 - saved.value, saved.error)  # not -0.0 of the scores themselves
    best = min((name for name in good if eligible[name]), key=lambda name: figures[name][metric].value)
    rows = [
        Row(
            name,
            figures[name],
            _differences(j, good["identity"], judged),
            _differences(j, good[best], judged),
            j.parameters,
            traits[name].preserves,
            j.fit_seconds,
            j.predict_seconds,
            eligible[name],
            j.messages,
            learnt=j.learnt,
        )
        for name, j in good.items()
    ]
    rows.sort(key=lambda row: row.metrics[metric].value)
    failed = [Row(name, keeps=traits[name].preserves, error=j) for name, j in found.items() if isinstance(j, str)]
    return (*rows, *failed)


def estimates(judgement: Judgement, judged: Problem) -> dict[str, Estimate]:
    """Return the figures of a map with their standard errors."""
    found = {name: _mean(judgement.rows[name], judged) for name in judgement.rows}
    return found | {name: Estimate(*pair) for name, pair in judgement.errors.items()}


def _differences(one: Judgement, other: Judgement, judged: Problem) -> dict[str, Estimate]:
    with np.errstate(invalid="ignore"):
        pairs = {name: one.rows[name] - other.rows[name] for name in one.rows}
    return {name: _mean(np.where(np.isnan(d), 0.0, d), judged) for name, d in pairs.items()}


def _mean(values: Array, judged: Problem) -> Estimate:
    """The weighted mean; rows of one group err together, so its error is that of the sums of the groups."""
    weights = judged.weight_array
    total = weights.sum()
    mean = float(weights @ values / total)
    if not np.isfinite(mean):
        return Estimate(mean, float("inf"))
    parts = weights * (values - mean)
    if judged.groups is not None:
        parts = np.bincount(judged.groups, parts)
    return Estimate(mean, float(np.sqrt(parts @ parts) / total))
