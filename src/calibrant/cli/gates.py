"""Gates for pipelines: ``"ece_sweep > 0.02"``."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import Any

import click

__all__ = ["Gate", "check_gates", "parse_gates"]

_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_RULE = re.compile(r"\s*([A-Za-z_][\w-]*)\s*(>=|<=|>|<)\s*(\S+)\s*")


@dataclass(frozen=True)
class Gate:
    """A rule that fails the run when it holds."""

    metric: str
    sign: str
    limit: float


def parse_gates(texts: tuple[str, ...]) -> list[Gate]:
    """Parse the rules; whether a metric of that name exists is known after measuring."""
    gates = []
    for text in texts:
        match = _RULE.fullmatch(text)
        try:
            limit = float(match.group(3)) if match else math.nan
        except ValueError:
            limit = math.nan
        if match is None or math.isnan(limit):
            raise click.BadParameter(f'{text!r} is not a rule such as "ece > 0.02"', param_hint="--fail-if")
        gates.append(Gate(match.group(1).replace("-", "_"), match.group(2), limit))
    return gates


def check_gates(gates: list[Gate], part: dict[str, Any]) -> list[str]:
    """Return what failed, in words; a value that is no number fails every rule."""
    metrics = part["metrics"]
    failed = []
    for gate in gates:
        if gate.metric not in metrics:
            raise click.BadParameter(
                f"no metric {gate.metric!r}; allowed: {', '.join(metrics)}", param_hint="--fail-if"
            )
        value = metrics[gate.metric]["value"]
        if math.isnan(value) or _COMPARE[gate.sign](value, gate.limit):
            failed.append(f"{gate.metric} = {value:.6g} {gate.sign} {gate.limit:g}")
    return failed
