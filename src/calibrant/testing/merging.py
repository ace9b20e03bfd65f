"""Whether an answer depends on how rows are cut into blocks, on the order in which results merge, or on row order.

`check_merging` takes a map, or a metric that is a state (update, merge, finalise). A map is fitted by an engine that
behaves like a cluster: every pass is pickled and sent to every block, what comes back is pickled too, and partial
results merge in a random order, in a tree. A pass that carries rows along is found by its size.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..calibrator import Calibrator
from ..errors import CalibrationWarning, InvalidInput
from ..passes import Block, Data, in_memory, in_passes
from ..passes.task import Answers, Task, run_tasks
from ..types import Array, Integers
from .problems import Problem, problem, require, sizes

_ROWS = 600
_CARRIED = 64_000  # bytes that a pass may take beyond a few numbers a row where the map says that it needs these
_PER_ROW = 64  # bytes: eight numbers
_CLOSE = 1e-5
_REPORTED = ("loss_before", "loss_after", "held_out_before", "held_out_after", "held_out_error")


@dataclass(eq=False)
class Scattered:
    """Passes over blocks as workers of a cluster have them; ``largest`` is the size of the largest that was sent."""

    blocks: list[Block]
    seed: int = 0
    largest: int = 0

    def run(self, tasks: Sequence[Task]) -> list[Any]:
        """Send the tasks to every block, and merge what comes back two at a time, in any order."""
        sent = _pickled(tuple(tasks), "a pass cannot be sent: its function must stand at the top of a module")
        self.largest = max(self.largest, len(sent))
        generator = np.random.default_rng(self.seed)
        found = [self._answer(sent, block) for block in self.blocks]
        while len(found) > 1:
            one, two = generator.choice(len(found), 2, replace=False)
            both = found[one] + found[two]
            found = [part for i, part in enumerate(found) if i not in (one, two)] + [both]
        return list(found[0].found)

    @staticmethod
    def _answer(sent: bytes, block: Block) -> Answers:
        answers = Answers(tuple(run_tasks(pickle.loads(sent), [block])), block.n)
        return pickle.loads(_pickled(answers, "what a pass returns cannot be sent"))


def _pickled(what: Any, words: str) -> bytes:
    try:
        return pickle.dumps(what)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise AssertionError(f"{words} ({error})") from error


def _cuts(labels: Integers) -> dict[str, list[Integers]]:
    """Ways to cut rows into blocks: each a list of row numbers."""
    n = len(labels)
    whole, nothing = np.arange(n), np.zeros(0, dtype=np.int64)
    return {
        "two blocks": np.array_split(whole, 2),
        "seven uneven blocks": np.split(whole, [1, 2, n // 20, n // 3, n // 2, n - 3]),
        "blocks of one class each, and empty ones": [
            nothing,
            *(np.flatnonzero(labels == k) for k in range(labels.max() + 1)),
            nothing,
        ],
    }


def scattered(data: Problem, rows: list[Integers], k: int, seed: int = 0) -> Scattered:
    """Return the problem's rows as workers have them."""
    block = Block(data.scores, data.labels, None, k)
    return Scattered([replace(block.take(part), part=number) for number, part in enumerate(rows)], seed=seed)


def _fitted(calibrator: Calibrator, data: Data, *, judged: bool) -> Calibrator:
    copy = calibrator.unfitted()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        copy.fit_data(data, check=judged)
    return copy


def blocks_do_not_matter(calibrator: Calibrator) -> None:
    """Give the same map and the same report however rows are cut, and send no rows to the blocks."""
    k = sizes(calibrator, (2, 4))[-1]
    data = problem(_ROWS, k, seed=k)
    whole = _fitted(calibrator, in_memory(Block(data.scores, data.labels, None, k)), judged=True)
    per_row = 0 if calibrator.traits.sees == "sums" else _PER_ROW
    for seed, (words, rows) in enumerate(_cuts(data.labels).items()):
        engine = scattered(data, rows, k, seed)
        judged = seed == 0  # refitting for the report takes most of the time
        try:
            found = _fitted(calibrator, in_passes(engine, k, k, data.scores.dtype), judged=judged)
        except (ValueError, TypeError, IndexError) as error:
            raise AssertionError(f"{words}: the fit fails, and on all rows as one it does not: {error}") from error
        gap = float(np.abs(found._map(data.other) - whole._map(data.other)).max())
        require(gap <= _CLOSE, f"{words}: probabilities differ by up to {gap:.3g}")
        if judged:
            _require_same_report(whole, found, words)
        most = _CARRIED + per_row * _ROWS * k
        require(engine.largest <= most, f"a pass of {engine.largest} bytes carries rows along")


def row_order_does_not_change_the_report(calibrator: Calibrator) -> None:
    """Say the same of a fit whatever the order of its rows."""
    for k in sizes(calibrator, (2, 4)):
        data = problem(200, k, seed=k)
        block = Block(data.scores, data.labels, None, k)
        order = np.random.default_rng(4).permutation(block.n)
        one, two = (_fitted(calibrator, in_memory(rows), judged=True) for rows in (block, block.take(order)))
        _require_same_report(one, two, "rows in another order")


def _require_same_report(one: Calibrator, two: Calibrator, words: str) -> None:
    for name in _REPORTED:
        a, b = getattr(one.fit_report_, name), getattr(two.fit_report_, name)
        same = a is b or (a is not None and b is not None and np.isclose(a, b, rtol=1e-6, atol=1e-9))
        require(same, f"{words}: fit_report_.{name} is {b!r} instead of {a!r}")


CHECKS = (blocks_do_not_matter, row_order_does_not_change_the_report)


def check_merging(piece: Any) -> None:
    """Check that a map or a metric answers the same for any blocks and any order of merging.

    Parameters
    ----------
    piece : Calibrator, or callable
        A map (it is cloned, never fitted), or a function that makes an empty state of a metric: with ``update(y_true,
        y_prob)``, ``merge(other)`` or ``+``, and ``finalise()``.

    Raises
    ------
    AssertionError
        That says what differs.

    Examples
    --------
    >>> from calibrant import TemperatureScaling
    >>> from calibrant.metrics import BinnedState
    >>> check_merging(TemperatureScaling())
    >>> check_merging(BinnedState)
    """
    if isinstance(piece, Calibrator):
        for check in CHECKS:
            check(piece)
    elif callable(piece):
        _check_state(piece)
    else:
        hint = 'make("ts") is a map; lambda: metrics.state("ece") makes an empty state'
        raise InvalidInput("this is neither a map nor a function that makes a state", seen=repr(piece)[:80], hint=hint)


def _check_state(make: Callable[[], Any]) -> None:
    empty = make()
    lacks = [name for name in ("update", "finalise") if not callable(getattr(empty, name, None))]
    lacks += [] if hasattr(empty, "merge") or hasattr(empty, "__add__") else ["merge"]
    require(not lacks, f"{type(empty).__name__} is no state of a metric: it has no {' and no '.join(lacks)}")
    data = problem(_ROWS, 4, seed=1)
    p = np.exp(data.scores - data.scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    wanted = _finalised(_updated(empty, data.labels, p))
    for words, rows in _cuts(data.labels).items():
        total = make()
        for part in rows:
            if len(part):
                total = _merged(_updated(make(), data.labels[part], p[part]), total)
        found = _finalised(total)
        same = found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-9, atol=1e-12, equal_nan=True)
        require(same, f"{words}: {found} instead of {wanted}")


def _finalised(state: Any) -> Array:
    found = state.finalise()
    try:
        return np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"finalise must give a number or an array of numbers, not {found!r:.80}") from error


def _updated(state: Any, labels: Integers, p: Array) -> Any:
    changed = state.update(labels, p)
    return state if changed is None else changed


def _merged(one: Any, two: Any) -> Any:
    if hasattr(one, "__add__"):
        return one + two
    merged = one.merge(two)
    return one if merged is None else merged
