"""Which maps a comparison tries: the words "default", "fast" and "all", and the one rule by rows and classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import InvalidInput
from ..registry import entries, make, names

__all__ = ["default_methods", "fast_methods", "left_out", "pick_methods"]

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


def left_out(methods: str | Sequence[str], embeddings: bool) -> list[str]:
    """Return the registered maps that "all" leaves out because they need embeddings and there are none."""
    if not isinstance(methods, str) or methods != "all" or embeddings:
        return []
    return [entry.name for entry in entries() if entry.traits.needs == "embeddings"]


def pick_methods(methods: str | Sequence[str], n: int, k: int, embeddings: bool) -> list[str]:
    """Return the names to compare, the identity first; unknown ones are refused."""
    if not isinstance(methods, str):
        picked = _listed(methods)
    elif methods == "all":
        missing = left_out(methods, embeddings)
        picked = [name for name in names() if name not in missing]
    elif methods == "default":
        picked = default_methods(n, k)
    elif methods == "fast":
        picked = fast_methods(n, k)
    else:
        picked = _listed([methods])
    return list(dict.fromkeys(["identity", *picked]))


def _listed(methods: Iterable[str]) -> list[str]:
    """Return names of maps one by one; what is none is refused."""
    if not isinstance(methods, Iterable):
        raise InvalidInput("methods cannot be read", seen=type(methods).__name__, allowed="a word, or a list of names")
    picked = list(methods)
    for name in picked:
        make(name)
    return picked
