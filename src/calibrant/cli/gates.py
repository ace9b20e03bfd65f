"""Gates for pipelines: ``"ece_sweep > 0.02"``, ``"ece.high > 0.05"``, ``"p < 0.01"``."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import Any

import click

_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_RULE = re.compile(r"\s*([A-Za-z_][\w-]*)(?:\.(value|low|high))?\s*(>=|<=|>|<)\s*(\S+)\s*")


@dataclass(frozen=True)
class Gate:
    """A rule that fails the run when it holds: about a metric, an end of its interval, or the test's p-value."""

    metric: str
    of: str
    sign: str
    limit: float

    @property
    def words(self) -> str:
        """What the rule is about."""
        return self.metric if self.of == "value" else f"{self.metric}.{self.of}"


def parse_gates(texts: tuple[str, ...], such_as: str = '"ece > 0.02", "ece.high > 0.05" or "p < 0.01"') -> list[Gate]:
    """Parse the rules; whether a metric of that name exists is known after measuring."""
    gates = []
    for text in texts:
        match = _RULE.fullmatch(text)
        try:
            limit = float(match.group(4)) if match else math.nan
        except ValueError:
            limit = math.nan
        if match is None or math.isnan(limit):
            raise click.BadParameter(f"{text!r} is not a rule such as {such_as}", param_hint="--fail-if")
        gates.append(Gate(match.group(1).replace("-", "_"), match.group(2) or "value", match.group(3), limit))
    return gates


def check_gates(gates: list[Gate], part: dict[str, Any]) -> list[str]:
    """Return what failed, in words; a value that is not known fails every rule."""
    metrics = {**part["metrics"], "p": {"value": part["test"]["pvalue"]}}
    failed = []
    for gate in gates:
        if gate.of not in metrics.get(gate.metric, ()):
            ends = [name for name, told in metrics.items() if "low" in told]
            which = "all but p" if len(ends) == len(metrics) - 1 else ", ".join(ends)
            raise click.BadParameter(
                f"no metric {gate.words!r}; allowed: {', '.join(metrics)}; hint: {which} can have .low and .high",
                param_hint="--fail-if",
            )
        value = metrics[gate.metric][gate.of]
        if value is None or math.isnan(value):
            failed.append(f"{gate.words} is not known")
        elif _COMPARE[gate.sign](value, gate.limit):
            failed.append(f"{gate.words} = {value:.6g} {gate.sign} {gate.limit:g}")
    return failed
