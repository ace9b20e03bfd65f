"""Good calls of the compiled core with something wrong in them: what comes so far that a kernel begins to compute.

``kernels`` makes its arguments one by one, and most of its calls are refused at the door. Here a call fits in every
shape; then one or two of its arguments are damaged. A kernel answers, the same whatever the number of threads, or
refuses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.core.calls import KERNELS, Call

from calibrant import _core

from .harness import attempt, same
from .kernels import REFUSALS, Rng

WILD = (np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 1e-320, -1e-320, 1e20, 0.0, -0.0, 1.0)
FAR = (-1, -2, 0, 1, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63))


def case(rng: Rng) -> str:
    """Call one kernel, with one thread and with three."""
    name = KERNELS[rng.integers(len(KERNELS))]
    n, k, m = (int(rng.choice(sizes)) for sizes in ((0, 1, 2, 5, 17, 40), (1, 2, 3, 5, 17, 66), (2, 3, 7, 33)))
    kind = np.float32 if rng.random() < 0.5 else np.float64
    arguments = Call(n, k, m, kind, seed=int(rng.integers(1000)), weighted=rng.random() < 0.7)(name)
    for _ in range(rng.integers(0, 3)):
        argument = list(arguments)[rng.integers(len(arguments))]
        arguments[argument] = _damaged(rng, arguments[argument])
    same(_answer(name, arguments, 1), _answer(name, arguments, 3), name)
    return name


def _answer(name: str, arguments: dict[str, Any], threads: int) -> Any:
    """Return all bytes that a call gives and writes, or its refusal."""
    own = {a: value.copy() if isinstance(value, np.ndarray) else value for a, value in arguments.items()}
    if own.get("threads") == 2:
        own["threads"] = threads
    answer = attempt(lambda: getattr(_core, name)(**own), REFUSALS)
    if isinstance(answer, BaseException):
        return answer
    written = b"".join(value.tobytes() for value in own.values() if isinstance(value, np.ndarray))
    return np.frombuffer(written + (b"" if name == "merge_close" else _bytes(answer)), np.uint8)


def _bytes(answer: Any) -> bytes:
    return b"".join(map(_bytes, answer)) if isinstance(answer, (tuple, list)) else np.asarray(answer).tobytes()


def _damaged(rng: Rng, value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return int(rng.choice(np.array(FAR, dtype=object)))
    if isinstance(value, float):
        return float(rng.choice(WILD))
    array = value.copy()
    if rng.random() < 0.2 and array.ndim:
        axis = int(rng.integers(array.ndim))
        last = np.take(array, [-1] if array.shape[axis] else [], axis=axis)
        return np.concatenate([array, last], axis=axis) if rng.random() < 0.5 else np.delete(array, slice(1), axis=axis)
    if not array.size or array.dtype == bool:
        return array
    places = rng.integers(array.size, size=int(rng.choice([1, 3, array.size])))
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            array.flat[places] = rng.choice(WILD, size=len(places)).astype(array.dtype)
        return array if rng.random() < 0.7 else array[::-1].copy()
    ends = np.iinfo(array.dtype)
    inside = [far for far in FAR if ends.min <= far <= ends.max]
    array.flat[places[:3]] = rng.choice(np.array(inside, dtype=array.dtype), size=len(places[:3]))
    return array
