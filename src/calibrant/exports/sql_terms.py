"""What each operation of a formula is in SQL, in three dialects."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..formulas import Formula
from ..formulas.graph import GRID, Node

_FAR = "700"  # an exponential beyond overflows, or is an error where engines refuse to round to zero
_LONGEST = 2_000_000  # characters of a node's texts; engines refuse longer ones
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "greater_equal": ">=", "greater": ">", "equal": "="}


@dataclass(frozen=True)
class Dialect:
    """How an engine writes numbers and names."""

    double: str
    nan_test: str
    special: str
    quotes: str = '"'
    step: str = "as"
    columns: float = math.inf  # that a query may have

    def literal(self, value: float) -> str:
        """Return a number with all its digits, as a double."""
        if math.isfinite(value):
            return f"{value:.17e}" if value else "0e0"
        word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return self.special.format(word)

    def number_of(self, column: str) -> str:
        """Return a column as a double."""
        return f"cast({column} as {self.double})"

    def is_nan(self, text: str) -> str:
        """Return the test for what is no number."""
        return self.nan_test.format(text)

    def quote(self, name: str) -> str:
        """Return a column's name in quotes."""
        inside = name.replace("\\", "\\\\").replace("`", "\\`") if self.quotes == "`" else name.replace('"', '""')
        return self.quotes + inside + self.quotes


DIALECTS = {
    "duckdb": Dialect("double", "isnan({})", "cast('{}' as double)"),
    # PostgreSQL writes each step's text into the next one unless told not to: twice as long at every step
    "postgres": Dialect(
        "double precision", "({} = 'NaN'::float8)", "'{}'::float8", step="as materialized", columns=1600
    ),
    "bigquery": Dialect("float64", "is_nan({})", "cast('{}' as float64)", "`", columns=10_000),
}


@dataclass(frozen=True)
class Columns:
    """The texts of the input's columns, and what keeps a result as named columns of an earlier step, if anything."""

    texts: list[str]
    keep: Callable[[int, int, list[str]], list[str]] | None = None


class SqlTerms:
    """The texts of every node, a text a column."""

    def __init__(self, formula: Formula, words: Dialect, columns: Columns) -> None:
        self.formula = formula if columns.keep is None else _spelt_out(formula)
        self.words, self.columns = words, columns
        self.texts: list[list[str]] = []
        self.levels: list[int] = []

    def expressions(self) -> list[str]:
        """Return the texts of the answer."""
        uses = np.bincount([i for node in self.formula.nodes for i in node.inputs], minlength=len(self.formula.nodes))
        for place, node in enumerate(self.formula.nodes):
            inputs = [self.texts[i] for i in node.inputs]
            level = max((self.levels[i] for i in node.inputs), default=0)
            texts = getattr(self, "_" + node.op, self._two)(node, *inputs)
            long = max(map(len, texts)) > 40 and uses[place] * self._times(place) > 1
            if self.columns.keep is not None and long and node.op not in _TRUTHS:
                texts = self.columns.keep(place, level, texts)
                level += 1
            if sum(map(len, texts)) > _LONGEST:
                raise OverflowError(f"more than {_LONGEST:,} characters")
            self.texts.append(texts)
            self.levels.append(level)
        return self.texts[self.formula.output]

    def _times(self, place: int) -> int:
        """How often a node writes the texts of another: rows and tables do so many times, and one number for all."""
        heavy = {"softmax", "first_top", "first_place", "pick", "matmul", "locate"}
        width = self.formula.nodes[place].width
        users = [node for node in self.formula.nodes if place in node.inputs]
        return 3 if any(node.op in heavy or node.width > width for node in users) else 1

    def _input(self, node: Node) -> list[str]:
        return self.columns.texts

    def _constant(self, node: Node) -> list[str]:
        return [self.words.literal(float(v)) for v in node.values["values"]]

    def _two(self, node: Node, a: list[str], b: list[str]) -> list[str]:
        return [f"({x} {_SIGNS[node.op]} {y})" for x, y in _pairs(node.width, a, b)]

    def _maximum(self, node: Node, a: list[str], b: list[str]) -> list[str]:
        return [f"greatest({x}, {y})" for x, y in _pairs(node.width, a, b)]

    def _minimum(self, node: Node, a: list[str], b: list[str]) -> list[str]:
        return [f"least({x}, {y})" for x, y in _pairs(node.width, a, b)]

    def _exp(self, node: Node, a: list[str]) -> list[str]:
        return [_exp(x) for x in a]

    def _log(self, node: Node, a: list[str]) -> list[str]:
        least = self.words.literal(-np.inf)
        return [f"(case when {x} > 0 then ln({x}) else {least} end)" for x in a]

    def _is_nan(self, node: Node, a: list[str]) -> list[str]:
        return [self.words.is_nan(x) for x in a]

    def _where(self, node: Node, a: list[str], b: list[str], c: list[str]) -> list[str]:
        found = zip(*(_wide(node.width, part) for part in (a, b, c)), strict=True)
        return [f"(case when {test} then {x} else {y} end)" for test, x, y in found]

    def _rounded(self, node: Node, a: list[str]) -> list[str]:
        return a

    def _gridded(self, node: Node, a: list[str]) -> list[str]:
        return [f"(({x} + {self.words.literal(GRID)}) - {self.words.literal(GRID)})" for x in a]

    def _next_up(self, node: Node, a: list[str]) -> list[str]:
        return [f"({x} * {self.words.literal(1.0 + 2.0**-52)})" for x in a]

    def _row_max(self, node: Node, a: list[str]) -> list[str]:
        return [f"greatest({', '.join(a)})" if len(a) > 1 else a[0]]

    def _row_min(self, node: Node, a: list[str]) -> list[str]:
        return [f"least({', '.join(a)})" if len(a) > 1 else a[0]]

    def _row_sum(self, node: Node, a: list[str]) -> list[str]:
        return [_total(a)]

    def _first_top(self, node: Node, a: list[str]) -> list[str]:
        top = self._row_max(node, a)[0]
        cases = " ".join(f"when {x} = {top} then {j}" for j, x in enumerate(a))
        return [f"((case {cases} end) = {j})" for j in range(node.width)]

    def _first_place(self, node: Node, a: list[str], top: list[str]) -> list[str]:
        return [f"(case {' '.join(f'when {x} = {top[0]} then {j}' for j, x in enumerate(a))} end)"]

    def _softmax(self, node: Node, a: list[str]) -> list[str]:
        return [f"(1e0 / {_total(['1e0' if x is y else _exp(f'({y} - {x})') for y in a])})" for x in a]

    def _matmul(self, node: Node, a: list[str]) -> list[str]:
        matrix = node.values["matrix"]
        return [_total([f"{x} * {self._number(m)}" for x, m in zip(a, row, strict=True)]) for row in matrix.T]

    def _number(self, value: float) -> str:
        return f"({self.words.literal(float(value))})"

    def _column(self, node: Node, a: list[str]) -> list[str]:
        return [_wide(int(node.values["place"]) + 1, a)[-1] if len(a) == 1 else a[int(node.values["place"])]]

    def _stack(self, node: Node, *parts: list[str]) -> list[str]:
        return [part[0] for part in parts]

    def _locate(self, node: Node, a: list[str]) -> list[str]:
        return a  # a table is looked up by the score itself, see `_pick`

    def _pick(self, node: Node, a: list[str]) -> list[str]:
        edges = self.formula.nodes[node.inputs[0]].values
        table = node.values["table"]
        found = zip(_wide(node.width, a), edges["groups"], node.values["groups"], strict=True)
        return [self._looked_up(x, edges["edges"][g], table[h]) for x, g, h in found]

    def _looked_up(self, x: str, edges: Any, table: Any) -> str:
        """Return nested cases: as deep as a bisection; neighbours of one answer are one."""
        kept = [i for i in range(len(edges)) if np.isfinite(edges[i]) and table[i] != table[i + 1]]
        answers = [table[i] for i in kept] + [table[int(np.isfinite(edges).sum())]]
        return self._cases(x, [edges[i] for i in kept], answers)

    def _cases(self, x: str, edges: Sequence[float], answers: Sequence[float]) -> str:
        if not edges:
            return self._number(answers[0])
        middle = len(edges) // 2
        above = self._cases(x, edges[middle + 1 :], answers[middle + 1 :])
        below = self._cases(x, edges[:middle], answers[: middle + 1])
        return f"(case when {x} >= {self.words.literal(float(edges[middle]))} then {above} else {below} end)"


_TRUTHS = {"greater_equal", "greater", "equal", "is_nan", "first_top", "constant", "input", "locate"}


def _spelt_out(formula: Formula) -> Formula:
    """Return it with what writes every column for every column in steps that each write a column once."""
    new = Formula(formula.nodes[0].width)
    terms = [new.input]
    for node in formula.nodes[1:]:
        given = [terms[i] for i in node.inputs]
        if node.op == "softmax":
            parts = (given[0] - given[0].row_max()).exp()
            terms.append(parts / parts.row_sum())
        elif node.op == "first_top":
            terms.append(new.add("first_place", [given[0], given[0].row_max()], 1).equals(np.arange(float(node.width))))
        else:
            terms.append(new.add(node.op, given, node.width, **node.values))
    new.output = terms[formula.output].place
    return new


def _exp(x: str) -> str:
    return f"exp(greatest(least({x}, {_FAR}), -{_FAR}))"


def _total(parts: list[str]) -> str:
    """Return a sum, halved where it is long: DuckDB refuses expressions that are 1,000 deep."""
    if len(parts) <= 100:
        return f"({' + '.join(parts)})"
    middle = len(parts) // 2
    return f"({_total(parts[:middle])} + {_total(parts[middle:])})"


def _wide(width: int, texts: list[str]) -> list[str]:
    return texts * width if len(texts) == 1 else texts


def _pairs(width: int, a: list[str], b: list[str]) -> zip[tuple[str, str]]:
    return zip(_wide(width, a), _wide(width, b), strict=True)
