"""A formula: nodes in the order of their computation, each one plain operation on rows of numbers.

A term is one node seen as a value: for every row of the input it has ``width`` numbers. Two terms of different widths
meet as NumPy arrays do, one of them being of width 1. The operations are few, so that a back end is a small file:

=========================================  =========================================================================
``input``, ``constant``                    the scores; the same numbers for every row
``add sub mul div maximum minimum``        of two terms, number by number
``exp log``                                of one
``greater_equal greater equal is_nan``     truth values; ``where`` chooses by them
``row_max row_min row_sum first_top``      of a row: a number, or where its first largest number is
``softmax``, ``matmul``                    of a row; with a constant matrix
``column``, ``stack``                      one number of a row; rows made of terms of width 1
``locate``, ``pick``                       how many of a column's edges are at or below; the entry of its table there
``rounded``                                to the precision of the scores, as a comparison in fit has seen them
``gridded``                                to multiples of 2⁻³⁶, as steps see log-odds; left out in single precision
``next_up``                                a number that is larger by about one unit in the last place of that precision
=========================================  =========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Array, Integers

GRID = 1.5 * 2.0**16  # added and taken off again, it leaves multiples of 2⁻³⁶ of numbers below 32,000


@dataclass(frozen=True, eq=False)
class Node:
    """One operation: its name, the nodes it takes, its constants, and how many numbers a row has."""

    op: str
    inputs: tuple[int, ...]
    width: int
    values: dict[str, NDArray[Any]] = field(default_factory=dict)


class Formula:
    """The nodes of a map; the first is the input, ``output`` the last that counts."""

    def __init__(self, columns: int, *, double: bool = False) -> None:
        self.double = double  # scores are in double precision wherever it runs, as in SQL
        self.nodes: list[Node] = [Node("input", (), columns)]
        self._known: dict[Any, Term] = {}
        self.output = 0

    @property
    def input(self) -> Term:
        """The scores."""
        return Term(self, 0)

    def add(self, op: str, inputs: Sequence[Term], width: int, **values: NDArray[Any]) -> Term:
        """Append a node; the same one again is the one that is there."""
        places = tuple(term.place for term in inputs)
        key = (op, places, width, *((name, value.shape, value.tobytes()) for name, value in values.items()))
        if key not in self._known:
            self.nodes.append(Node(op, places, width, dict(values)))
            self._known[key] = Term(self, len(self.nodes) - 1)
        return self._known[key]

    def constant(self, values: Any) -> Term:
        """Return a number, or one a column, that is the same for every row."""
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
        return self.add("constant", (), len(array), values=array)

    def once(self, key: Any, make: Callable[[], Term]) -> Term:
        """Return what was made for this key before, or make it."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def pruned(self) -> Formula:
        """Return the nodes that the output depends on."""
        wanted, order = {self.output, 0}, []
        for place in range(len(self.nodes) - 1, -1, -1):
            if place in wanted:
                wanted.update(self.nodes[place].inputs)
                order.append(place)
        order.reverse()
        new = {place: i for i, place in enumerate(order)}
        small = Formula(self.nodes[0].width)
        small.nodes = [
            Node(node.op, tuple(new[i] for i in node.inputs), node.width, node.values)
            for node in (self.nodes[place] for place in order)
        ]
        small.output = new[self.output]
        return small


class Term:
    """A node as a value, with the arithmetic of numbers."""

    __array_ufunc__ = None  # an array on the left leaves the arithmetic to the term

    def __init__(self, formula: Formula, place: int) -> None:
        self.formula = formula
        self.place = place

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return self.formula.nodes[self.place].width

    def _with(self, op: str, *others: Number) -> Term:
        terms = [self, *(self.lift(other) for other in others)]
        return self.formula.add(op, terms, max(term.width for term in terms))

    def lift(self, value: Number) -> Term:
        """Return a number or an array as a constant term."""
        return value if isinstance(value, Term) else self.formula.constant(value)

    def __add__(self, other: Number) -> Term:
        return self._with("add", other)

    def __sub__(self, other: Number) -> Term:
        return self._with("sub", other)

    def __mul__(self, other: Number) -> Term:
        return self._with("mul", other)

    def __truediv__(self, other: Number) -> Term:
        return self._with("div", other)

    def __radd__(self, other: Number) -> Term:
        return self.lift(other) + self

    def __rsub__(self, other: Number) -> Term:
        return self.lift(other) - self

    def __rmul__(self, other: Number) -> Term:
        return self.lift(other) * self

    def __rtruediv__(self, other: Number) -> Term:
        return self.lift(other) / self

    def __neg__(self) -> Term:
        return 0.0 - self

    def __ge__(self, other: Number) -> Term:
        return self._with("greater_equal", other)

    def __gt__(self, other: Number) -> Term:
        return self._with("greater", other)

    def __le__(self, other: Number) -> Term:
        return self.lift(other) >= self

    def __lt__(self, other: Number) -> Term:
        return self.lift(other) > self

    def equals(self, other: Number) -> Term:
        """Where both are the same number."""
        return self._with("equal", other)

    def is_nan(self) -> Term:
        """Where it is no number."""
        return self._with("is_nan")

    def where(self, yes: Number, no: Number) -> Term:
        """Take one where this truth value holds, else the other."""
        return self._with("where", yes, no)

    def at_least(self, other: Number) -> Term:
        """Return the larger of two."""
        return self._with("maximum", other)

    def at_most(self, other: Number) -> Term:
        """Return the smaller of two."""
        return self._with("minimum", other)

    def clip(self, low: Number, high: Number) -> Term:
        """Return what is nearest between two bounds."""
        return self.at_least(low).at_most(high)

    def exp(self) -> Term:
        """Return e to its power."""
        return self._with("exp")

    def log(self) -> Term:
        """Return its natural logarithm; -inf of zero."""
        return self._with("log")

    def rounded(self) -> Term:
        """Return it in the precision of the scores."""
        return self._with("rounded")

    def gridded(self) -> Term:
        """Return the nearest multiple of 2⁻³⁶: what another order of summing would change is gone."""
        return self._with("gridded")

    def next_up(self) -> Term:
        """Return a number that is larger by about one unit in the last place, for positive ones."""
        return self._with("next_up")

    def softmax(self) -> Term:
        """Return softmax over the row; -inf gives 0."""
        return self._with("softmax")

    def first_top(self) -> Term:
        """Where the first largest number of the row is."""
        return self._with("first_top")

    def row_max(self) -> Term:
        """Return the largest number of the row."""
        return self.formula.add("row_max", [self], 1)

    def row_min(self) -> Term:
        """Return the smallest number of the row."""
        return self.formula.add("row_min", [self], 1)

    def row_sum(self) -> Term:
        """Return the sum of the row."""
        return self.formula.add("row_sum", [self], 1)

    def row_mean(self) -> Term:
        """Return the mean of the row."""
        return self.row_sum() / float(self.width)

    def column(self, place: int) -> Term:
        """Return one number of the row."""
        if self.width == 1:
            return self
        return self.formula.add("column", [self], 1, place=np.array(place))

    def matmul(self, matrix: Array) -> Term:
        """Return the row times a matrix of (width, new width)."""
        return self.formula.add(
            "matmul", [self], matrix.shape[1], matrix=np.ascontiguousarray(matrix, dtype=np.float64)
        )

    def locate(self, edges: Sequence[Array], groups: Integers, *, as_scores: bool = False) -> Term:
        """Return for each column how many edges of its group's list are at or below it.

        ``as_scores``: the edges are first rounded to the precision of the scores.
        """
        length = 2 ** max(1, max(map(len, edges)).bit_length()) - 1
        table = np.full((len(edges), length), np.inf)
        for row, own in zip(table, edges, strict=True):
            row[: len(own)] = own
        rounds = {"as_scores": np.ones(1)} if as_scores else {}
        return self.formula.add("locate", [self], self.width, edges=table, groups=_narrow(groups, self.width), **rounds)

    def pick(self, tables: Sequence[Array], groups: Integers) -> Term:
        """Return the entry of its group's table at each column's index; beyond the last, the last."""
        edges = self.formula.nodes[self.place].values["edges"]
        table = np.empty((len(tables), edges.shape[1] + 1))
        for row, own in zip(table, tables, strict=True):
            row[: len(own)] = own
            row[len(own) :] = own[-1]
        return self.formula.add("pick", [self], self.width, table=table, groups=_narrow(groups, self.width))


Number = Term | float | Array


def _narrow(groups: Integers, width: int) -> Integers:
    return np.broadcast_to(np.asarray(groups, dtype=np.int64), (width,)).copy()


def as_rows(columns: Sequence[Term]) -> Term:
    """Return rows made of terms of width 1."""
    return columns[0].formula.add("stack", columns, len(columns))
