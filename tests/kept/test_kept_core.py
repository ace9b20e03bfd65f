"""What every kernel of the core says, of one row and of many, with all of its settings, is what it was."""

import json
import os

import numpy as np
import pytest
from tests.core.calls import KERNELS, Call, signatures
from tests.kept.comparing import HERE

from calibrant import _core

PATH = HERE / "core.json"
# Rows, classes and other things. The last is enough for several blocks of rows.
SIZES = [(1, 1, 2), (3, 2, 3), (12, 5, 7), (70, 17, 33), (40, 130, 9), (2001, 67, 5)]
CHOICES = {"loss": (1,), "noise": (0,), "norm": (0, 1), "most": (1, 3), "start": (None,)}
CLOSE = {np.float64: 1e-8, np.float32: 1e-4}  # of the sum of sizes: what other processors may round otherwise
ROWS_OF_DOUBLES = {name for name in KERNELS if "floating" not in str(signatures()[name])}


def hostile(call):
    """Let scores tie, be far apart and be impossible."""
    z = np.round(call.logits)
    z[::3, 0] = -np.inf if z.shape[1] > 1 else 0
    z[::5, -1] = 800
    call.logits = z
    return call


def calls(kernel, kind):
    """Yield names and arguments of calls: every size, then every setting other than it is."""
    for n, k, m in SIZES[:4] if kernel.startswith("matrix_") else SIZES:  # whose results grow with the cube of classes
        yield f"{n} x {k}", Call(n, k, m, kind)(kernel)
    for n, k, m in SIZES[2:4]:
        yield f"{n} x {k} without weights", Call(n, k, m, kind, weighted=False)(kernel)
        yield f"{n} x {k} hostile", hostile(Call(n, k, m, kind))(kernel)
        for name, kept in Call(n, k, m, kind)(kernel).items():
            others = (not kept,) if isinstance(kept, bool) else CHOICES.get(name, ()) if np.ndim(kept) == 0 else ()
            optional = "None" in signatures()[kernel][name] and name not in ("weights", "row_weights", "start")
            for other in (*others, *((None,) if optional else ())):
                changed = {"keep_top": False} if (kernel, name) == ("finite_logs", "logits") else {}
                if (kernel, name) == ("cell_sums", "first"):
                    changed = {"shift": None, "out": np.zeros((128, 2))}
                elif (kernel, name) == ("cell_sums", "shift"):
                    continue
                yield f"{n} x {k} {name} {other}", Call(n, k, m, kind)(kernel, **{name: other}, **changed)


def told(kernel, called):
    """Return for each result, and for each array that was written to, what stands for its numbers."""
    before = {name: value.copy() for name, value in called.items() if isinstance(value, np.ndarray)}
    with np.errstate(all="ignore"):
        answer = getattr(_core, kernel)(**called)
    if kernel == "merge_close":
        answer = (answer[0], answer[1][answer[0] == 1])  # a bound is written where a group begins
    found = [called[name] for name in before if not np.array_equal(called[name], before[name], equal_nan=True)]
    return [sums(part) for part in [*parts(answer), *found]]


def parts(answer):
    """Yield the arrays and numbers of an answer, however it is nested."""
    if isinstance(answer, (tuple, list)):
        for part in answer:
            yield from parts(part)
    elif answer is not None:
        yield answer


def sums(values):
    """Return how many numbers there are, their sizes' sum, and two sums that tell of their order and signs."""
    values = np.asarray(values)
    if values.dtype == np.uint64:
        values = values >> np.uint64(40)
    numbers = np.nan_to_num(values.astype(np.float64).ravel(), nan=-1.5, posinf=1e3, neginf=-1e3)
    turns = np.cos(np.arange(len(numbers)))
    return [float(f"{x:.10g}") for x in (len(numbers), np.abs(numbers).sum(), numbers.sum(), numbers @ turns)]


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel):
    known = json.loads(PATH.read_text()) if PATH.exists() else {}
    kinds = {"double": np.float64} if kernel in ROWS_OF_DOUBLES else {"double": np.float64, "single": np.float32}
    found = {f"{kernel} {s} {name}": told(kernel, c) for s, kind in kinds.items() for name, c in calls(kernel, kind)}
    if os.environ.get("CALIBRANT_KEEP"):
        known = {name: kept for name, kept in known.items() if name.split()[0] != kernel} | found
        PATH.write_text("{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(known[n])}" for n in sorted(known)) + "\n}\n")
        return
    assert found.keys() == {name for name in known if name.split()[0] == kernel}
    for name, now in found.items():
        close = CLOSE[kinds[name.split()[1]]]
        assert len(now) == len(known[name]), name
        for one, was in zip(now, known[name], strict=True):
            assert one[0] == was[0], name
            assert np.allclose(one, was, rtol=0, atol=close * was[1] + 1e-12), f"{name}: {one} was {was}"
