"""Which maps a comparison tries: the words "default", "fast" and "all", and the one rule by rows and classes."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from ..calibrator import Calibrator
from ..errors import InvalidInput
from ..registry import entries, make_seeded, names

Methods = str | Calibrator | Sequence[str | Calibrator]  # what a user may ask to compare

# Each but ts, which is what others start from, was the best of all maps on some of the real sets behind `choice.py`.
_ANY = ("identity", "ts", "ets", "iop", "gp", "irm", "irova", "beta", "svs", "vector", "sms", "blend")
# On one score; with more classes platt and bbq are 8 and 33 % behind the best (medians, 1,000 rows). The others have
# the first ranks of 25 problems of two classes (docs/evidence/new_maps.md).
_BINARY = ("platt", "bbq", "quadratic", "logit-spline", "isotonic-centred")
# Weights between classes, the diagonal free: first on naive Bayes and discriminants with 20 rows a class and more
# (satimage, segment, letter: 1 to 4 % ahead of sms, in less time); with 100 classes never.
_ODIR = ("matrix-odir", "dirichlet-odir")
_ODIR_CLASSES = 50
_SLOW = ("iop", "svs", "sms", "blend")  # 20 to 700 ms for 1,000 rows of ten classes; the others take 20 at most
_SMS_CLASSES = 256  # K² numbers: at K = 1,000 a fit on 10,000 rows takes five seconds, four times as long as svs
_BLEND_SCORES = 100_000  # n·K: eight maps, each fitted six times for each fold, take about ten seconds of the processor


def default_methods(n: int, k: int) -> list[str]:
    """Return the maps that win on real sets and can be compared in seconds, for n rows of K classes."""
    affordable = {"sms": k <= _SMS_CLASSES, "blend": n * k <= _BLEND_SCORES}
    others = (*(_BINARY if k == 2 else ()), *(_ODIR if k <= _ODIR_CLASSES else ()))
    return [name for name in (*_ANY, *others) if affordable.get(name, True)]


def fast_methods(n: int, k: int) -> list[str]:
    """Return those of the default that take milliseconds."""
    return [name for name in default_methods(n, k) if name not in _SLOW]


def left_out(methods: Methods, embeddings: bool) -> list[str]:
    """Return the registered maps that "all" leaves out because they need embeddings and there are none."""
    if not isinstance(methods, str) or methods != "all" or embeddings:
        return []
    return [entry.name for entry in entries() if entry.traits.needs == "embeddings"]


def pick_methods(methods: Methods, n: int, k: int, embeddings: bool, random_state: int = 0) -> dict[str, Calibrator]:
    """Return the maps to compare by what they are called, the identity first; unknown ones are refused."""
    picked: Any = [methods]
    if not isinstance(methods, (str, Calibrator)):
        picked = methods
    elif isinstance(methods, str) and methods == "all":
        missing = left_out(methods, embeddings)
        picked = [name for name in names() if name not in missing]
    elif isinstance(methods, str) and methods in ("default", "fast"):
        picked = default_methods(n, k) if methods == "default" else fast_methods(n, k)
    elif methods not in names() and (near := get_close_matches(str(methods), ("default", "fast", "all"), n=1)):
        raise InvalidInput(
            "no set of maps has this name",
            seen=repr(methods),
            allowed="default, fast, all, or names of maps",
            hint=f"did you mean {near[0]}?",
        )
    try:
        picked = list(picked)
    except (TypeError, RuntimeError) as error:  # arrays without a dimension say that they can be walked through
        allowed = "a word, or a list of maps"
        raise InvalidInput("methods cannot be read", seen=type(picked).__name__, allowed=allowed) from error
    return dict(_named(one, random_state) for one in ("identity", *picked))


def _named(one: Any, random_state: int) -> tuple[str, Calibrator]:
    """Return what a map is called, and an unfitted one."""
    if isinstance(one, Calibrator):
        return " ".join(repr(one).split()), one.unfitted()
    return one, make_seeded(one, random_state)
