"""A formula as SQL: one expression for one score, or a query of named steps for several columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidInput, blamed
from ..parameters import is_one_of
from ..types import Floats
from .description import describe
from .sql_terms import DIALECTS, Columns, Dialect, SqlTerms


def to_sql(
    calibrator: Any,
    columns: str | Sequence[str],
    dialect: str = "duckdb",
    *,
    table: str | None = None,
    keep: Sequence[str] = (),
) -> str:
    """Return a fitted map as SQL.

    Of one column, an expression of the second class's probability: ``select …, {calibrator.to_sql('score')} from t``.
    Of a column a class and a ``table``, a query of the columns to ``keep`` and one probability a class, named
    ``p_`` and the class, which may be made a view. NULL is answered by NULL and NaN by NaN.

    Parameters
    ----------
    calibrator : Calibrator
    columns : str or sequence of str
        The column of the scores, or one a class in the order of ``classes_``. They are written as they are given.
    dialect : {"duckdb", "postgres", "bigquery"}
    table : str, optional
        What to select from, where there is more than one column.
    keep : sequence of str
        Columns of the table that the query keeps, a key for instance.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import PlattScaling
    >>> rng = np.random.default_rng(0)
    >>> score = 3 * rng.normal(size=400)
    >>> platt = PlattScaling().fit(score, rng.random(400) < 1 / (1 + np.exp(-score / 3)))
    >>> platt.to_sql("score", dialect="duckdb")[:38]
    'case when cast(score as double) is nul'
    """
    if not is_one_of(dialect, DIALECTS):
        raise InvalidInput("no such dialect", seen=repr(dialect), allowed=", ".join(DIALECTS))
    words, listed, kept = DIALECTS[dialect], _listed(columns), _listed(keep)
    for given in (*listed, *kept, *([] if table is None else [table])):
        if not isinstance(given, str) or not given:
            raise InvalidInput("columns, table and keep are names in SQL", seen=repr(given)[:80], allowed="words")
    if isinstance(columns, str):
        return _expression(calibrator, columns, words)
    if table is None:
        raise InvalidInput(
            "several columns make a query, which selects from a table",
            seen="no table",
            hint='name it: to_sql(columns, table="scores", keep=["id"])',
        )
    return _query(calibrator, listed, words, table, kept)


def _listed(names: Any) -> list[Any]:
    """Return one name, or several, as a list; what is none of these is found there."""
    try:
        return [names] if isinstance(names, str) else list(names)
    except (TypeError, RuntimeError):
        return [names]


def _expression(calibrator: Any, column: str, words: Dialect) -> str:
    description = describe(calibrator, True, bare=True)
    x = words.number_of(column)
    what, hint = f"{description.called} is too long for one SQL expression", f'to_sql(["{column}"], table=…)'
    with blamed(what, OverflowError, problem=InvalidInput, hint=f"make it a query: {hint}"):
        text = SqlTerms(description.formula, words, Columns([x])).expressions()[-1]
    low, high = _at_the_ends(calibrator)
    if description.inputs == "probabilities":
        first, last, inside = f"{x} = 0", f"{x} = 1", f"({x} > 0 and {x} < 1)"
    else:
        first, last = f"{x} = {words.literal(-np.inf)}", f"{x} = {words.literal(np.inf)}"
        inside = f"not {words.is_nan(x)}"
    cases = [f"when {x} is null then null", f"when {first} then {words.literal(low)}"]
    cases += [f"when {last} then {words.literal(high)}", f"when {inside} then {text}"]
    return f"case {' '.join(cases)} else {words.literal(np.nan)} end"


def _at_the_ends(calibrator: Any) -> tuple[float, float]:
    """Return the answers to scores that are certain: what `predict_proba` reads them as."""
    certain = np.array([[1.0, 0.0], [0.0, 1.0]])
    if calibrator.inputs == "logits":
        with np.errstate(divide="ignore"):
            certain = np.log(certain)
    found: Floats = calibrator.predict_proba(certain)
    return float(found[0, 1]), float(found[1, 1])


def _query(calibrator: Any, columns: list[str], words: Dialect, table: str, keep: list[str]) -> str:
    one = len(columns) == 1
    description = describe(calibrator, one, bare=not one)
    wanted = description.formula.nodes[0].width
    if len(columns) != wanted:
        raise InvalidInput("one column a class is needed", seen=f"{len(columns)} columns", allowed=str(wanted))
    steps = _Steps(words, table, [*keep, *columns])
    terms = SqlTerms(description.formula, words, Columns([words.number_of(c) for c in columns], steps.name))
    what = f"{description.called} of {wanted} columns is too long for SQL"
    with blamed(what, OverflowError, problem=InvalidInput, hint="export to ONNX, torch or JSON"):
        answers = terms.expressions()
        steps.check()
    bad = " or ".join(f"{c} is null" for c in columns)
    nan = " or ".join(words.is_nan(words.number_of(c)) for c in columns)
    (no,) = steps.name(len(terms.formula.nodes), 0, [f"case when {bad} then 1 when {nan} then 2 else 0 end"])
    guarded = [
        f"case {no} when 1 then null when 2 then {words.literal(np.nan)} else {answer} end as {words.quote(name)}"
        for answer, name in zip(answers, [f"p_{c}" for c in description.classes], strict=True)
    ]
    return steps.query([*keep, *guarded])


@dataclass
class _Steps:
    """Named results, each in the first step in which everything it needs is known."""

    words: Dialect
    table: str
    kept: list[str]

    def __post_init__(self) -> None:
        self.kept = list(dict.fromkeys(self.kept))
        self.levels: list[list[str]] = []

    def name(self, place: int, level: int, expressions: list[str]) -> list[str]:
        """Keep expressions as columns of a step, and return their names."""
        while len(self.levels) <= level:
            self.levels.append([])
        names = [f"v{place}_{j}" for j in range(len(expressions))]
        self.levels[level] += [f"{e} as {n}" for e, n in zip(expressions, names, strict=True)]
        return names

    def check(self) -> None:
        """Refuse what the engine would: every step carries the columns of those before it."""
        count = len(self.kept) + sum(map(len, self.levels))
        if count > self.words.columns:
            raise OverflowError(f"{count:,} columns in its steps, where an engine takes {self.words.columns:,}")

    def query(self, answers: list[str]) -> str:
        """Return the whole query."""
        source, parts = self.table, []
        for i, level in enumerate(self.levels):
            kept = ["*"] if i else self.kept
            parts.append(f"step{i} {self.words.step} (select {', '.join(kept + level)} from {source})")
            source = f"step{i}"
        start = f"with {', '.join(parts)} " if parts else ""
        return f"{start}select {', '.join(answers)} from {source}"
