"""What is read from odd inputs, and in which words others are refused, is what it was."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from tests.kept.comparing import check

from calibrant.errors import CalibrantError
from calibrant.metrics.views.labels import read_labels_of
from calibrant.validation import arrays, columns, labels, probabilities, saturation, scores

INF, NAN = np.inf, np.nan
RNG = np.random.default_rng(0)
P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])
Z = np.log(P) + 1.5
FRAME = pd.DataFrame(Z, columns=["p_ant", "p_bee", "p_cat"])
SCORES = {
    "distributions": P,
    "logits": Z,
    "single": P.astype(np.float32),
    "half": P.astype(np.float16),
    "whole": np.array([[1, 0, 0], [0, 0, 1]]),
    "one row": P[:1],
    "one row of logits": Z[:1],
    "a column": P[:, :1],
    "a vector": P[:, 0],
    "a vector beyond": np.array([0.2, 1.3, -0.5]),
    "a vector a little beyond": np.array([0.2, 1 + 5e-7, -5e-7]),
    "a vector beyond rounding": np.array([0.2, 1 + 2e-6]),
    "a vector below rounding": np.array([0.2, -2e-6]),
    "a vector of percentages": np.array([20.0, 80.0, 50.0]),
    "log-odds in two columns": np.column_stack([np.zeros(3), [0.5, 1.0, 0.2]]),
    "percentages": 100 * P,
    "sums within": P * np.array([[1.0], [1.0009], [1.0]]),
    "sums beyond": P * np.array([[1.0], [1.0], [1.0011]]),
    "a little negative": P + np.array([5e-7, 0, -0.1 - 5e-7]) * np.array([[1.0], [0.0], [0.0]]),
    "too negative": P + np.array([5e-6, 0, -0.1 - 5e-6]) * np.array([[1.0], [0.0], [0.0]]),
    "above one": np.array([[1 + 5e-4, 0.0], [0.5, 0.5]]),
    "nan": np.where(np.arange(9).reshape(3, 3) == 4, NAN, P),
    "plus": np.where(np.arange(9).reshape(3, 3) == 7, INF, Z),
    "minus": np.where(np.arange(9).reshape(3, 3) == 7, -INF, Z),
    "a row of minus": np.where(np.arange(9).reshape(3, 3) > 5, -INF, Z),
    "minus in a vector": np.array([1.5, -INF, 2.0]),
    "both infinities": np.array([[INF, -INF], [0.5, 0.5]]),
    "huge": Z * 1e101,
    "nearly huge": Z * 1e99,
    "huge single": (Z * 1e35).astype(np.float32),
    "nearly huge single": (Z * 1e33).astype(np.float32),
    "tiny": Z * 1e-101,
    "tiny single": (Z * 1e-19).astype(np.float32),
    "nearly tiny single": (Z * 1e-17).astype(np.float32),
    "zeros": np.zeros((3, 2)),
    "a frame": FRAME,
    "nothing": None,
    "empty": np.empty((0, 3)),
    "no columns": np.empty((3, 0)),
    "no dimensions": np.float64(0.5),
    "three dimensions": np.zeros((2, 2, 2)),
    "ragged": [[0.1, 0.9], [1.0]],
    "complex": P + 1j,
    "words": np.array([["a", "b"]]),
    "numbers in words": np.array([["0.1", "0.9"], ["0.5", "0.5"]]),
    "masked": np.ma.array(P, mask=P > 0.6),
    "lists": P.tolist(),
}
WEIGHTS = {
    "nothing": None,
    "a number": 2.0,
    "ones": np.ones(3),
    "counts": [0, 2, 1],
    "too few": [1.0, 2.0],
    "negative": [1.0, -2.0, 3.0],
    "not finite": [1.0, INF, 3.0],
    "none": np.zeros(3),
    "huge": np.array([1e300, 2e300, 0.0]),
    "large": np.array([1e15, 1e15, 0.0]),
    "just large": np.array([5e14, 5e14, 0.0]),
    "tiny": np.array([1e-300, 3e-300, 0.0]),
    "small": np.array([3e-21, 3e-21, 3e-21]),
    "just small": np.array([1e-20, 0.0, 0.0]),
    "words": ["a", "b", "c"],
}
LABELS = {
    "places": ([0, 2, 1], {}),
    "beyond": ([0, 3, 1], {}),
    "negative": ([0, -1, 1], {}),
    "two of three": ([5, 7, 5], {}),
    "three others": ([5, 9, 7], {}),
    "words": (["b", "a", "c"], {}),
    "floats": (np.array([0.0, 2.0, 1.0]), {}),
    "fractions": (np.array([0.0, 0.5, 1.0]), {}),
    "too large": (np.array([0.0, 1.0, 2.0**54]), {}),
    "nearly too large": (np.array([0.0, 1.0, 2.0**53]), {}),
    "nan": (np.array([0.0, NAN, 1.0]), {}),
    "missing": (np.array(["a", None, "b"], dtype=object), {}),
    "mixed": (np.array(["a", 1, "b"], dtype=object), {}),
    "booleans": ([True, False, True], {"k": 2}),
    "a column": (np.array([[0], [1], [2]]), {}),
    "one-hot": (np.eye(3), {}),
    "too few": ([0, 1], {}),
    "nothing": (None, {}),
    "given": (["b", "a", "b"], {"classes": ["c", "b", "a"]}),
    "given, twice": (["b", "a", "b"], {"classes": ["b", "b", "a"]}),
    "given, too few": (["b", "a", "b"], {"classes": ["b", "a"]}),
    "given, unknown": (["b", "x", "b"], {"classes": ["c", "b", "a"]}),
    "given, other order": (["b", "a", "b"], {"classes": ["c", "b", "a"], "columns": ("a", "b", "c")}),
    "columns": (["bee", "ant", "bee"], {"columns": ("p_bee", "p_ant", "p_cat")}),
    "columns of numbers": ([3, 1, 3], {"columns": ("p_3", "p_1", "p_2")}),
    "columns of places": ([1, 0, 1], {"columns": ("p_2", "p_1", "p_0")}),
    "columns of part numbers": ([1, 2, 1], {"columns": ("x07", "x01", "x02")}),
    "embeddings": (["b", "a", "b"], {"k": None}),
    "embeddings, given": (["b", "a", "b"], {"k": None, "classes": ["a", "b", "z"]}),
}
GROUPS = {
    "words": ["x", "y", "x"],
    "numbers": [3, 1, 3],
    "floats": [3.5, 1.5, 3.5],
    "nan": [3.5, NAN, 3.5],
    "missing": np.array(["x", None, "y"], dtype=object),
    "mixed": np.array(["x", 1, "y"], dtype=object),
    "too few": ["x", "y"],
}
ORDERS = {
    "the same": (("a", "b"), ("a", "b"), None),
    "turned": (("b", "a"), ("a", "b"), None),
    "affixes": (("p_b_", "p_a_", "p_c_"), None, ("a", "b", "c")),
    "affixes in fit": (("b", "a"), ("p_a", "p_b"), None),
    "numbers": ((0, 1, 2), ("a", "b", "c"), None),
    "others": (("x", "y"), ("a", "b"), None),
    "one of them": (("a", "y"), None, ("a", "b")),
    "none of them": (("x", "y"), None, ("a", "b")),
    "more": (("a", "b", "c"), ("a", "b"), None),
    "many": (tuple("abcdefgh"), tuple("hijklmno"), None),
    "a word in a word": (("an_ant", "an_bee"), ("bee", "ant"), None),
    "nameless": (("pp", "p"), ("p", ""), None),
}


def told(function, *given, **more):
    """Return what a function answers, or the words and numbers of its refusal, and those of its warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = function(*given, **more)
        except CalibrantError as error:
            foreign = "cannot be read" in str(error) or "must hold numbers" in str(error)  # others' words follow
            text = str(error).split(" (", 1)[0] if foreign else str(error)
            numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", text)]
            found = {"refused": type(error).__name__ + " " + text, "with": numbers}
    warned = {"warned": " ".join(str(one.message) for one in said)} if said else {}
    return {"found": found if found is not None else "nothing", **warned}


@pytest.mark.parametrize("name", SCORES)
def test_scores(name):
    found = {kind: told(scores.as_scores, SCORES[name], kind) for kind in ("logits", "probabilities")}
    found["embeddings"] = told(scores.as_embeddings, SCORES[name])
    for free in (False, True):
        found[f"judged, free {free}"] = told(probabilities.as_probabilities, SCORES[name], marginals=free)
    check("validation", f"scores {name}", found)


def test_weights_labels_groups_and_columns():
    found = {f"weights {n}": told(arrays.as_weights, w, 3) for n, w in WEIGHTS.items()}
    found |= {f"part of weights {n}": told(arrays.as_weights, w, 3, whole=False) for n, w in WEIGHTS.items()}
    found |= {f"labels {n}": told(labels.as_labels, y, **{"k": 3, "n": 3, **m}) for n, (y, m) in LABELS.items()}
    found |= {f"groups {n}": told(labels.as_groups, g, 3) for n, g in GROUPS.items()}
    found |= {f"columns {n}": told(columns.column_order, *given) for n, given in ORDERS.items()}
    for name, one in found.items():
        check("validation", name, one)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_zeros(k):
    rng = np.random.default_rng(k)
    z = rng.normal(size=(5000, k)) * 3
    z[rng.random(z.shape) < 0.2] = -INF
    z[:, 1] = rng.normal(size=5000)
    y, w = rng.integers(0, k, 5000), rng.integers(0, 3, 5000).astype(float)
    counts = saturation.count_zeros(z, y, w)
    p = rng.dirichlet(np.ones(k), 5000)
    p[rng.random(p.shape) < 0.1] = 0
    found = {
        "counts": counts,
        "unweighted": saturation.count_zeros(z, y, None),
        "without": [saturation.rows_without_zeros(one, 5000) for one in (None, w)],
        "level": saturation.zero_level(counts, k),
        "levels": [saturation.zero_level(np.array(c, float), k) for c in ([9, 0, 0, 9], [9, 2, 2, 9], [90, 20, 1, 9])],
        "smallest": [saturation.smallest_log(part) for part in (z, z[:7], np.zeros((3, k)))],
        "read": saturation.read_zeros(z, -4.0),
        "floored": saturation.floored(z),
        "floored here": saturation.floored(z, np.arange(5000 * k).reshape(-1, k) % 3 == 0),
        "logs": saturation.finite_logs(p, z, 0.9, 0.01, keeps_top=True),
        "masked": saturation.masked_out(p, z),
    }
    check("validation", f"zeros of {k}", found)


def test_the_label_is_among_the_largest():
    p = RNG.dirichlet(np.ones(4), 60).round(1)
    p[:, 0] += 1 - p.sum(axis=1)
    y = np.arange(60) % 4
    found = {f"{most}": told(probabilities.label_hits, p, y, most) for most in (1, 2, 3)}
    found["free"] = told(probabilities.label_hits, p * 1.5, y, 2, marginals=True)
    check("validation", "hits", found)


@pytest.mark.parametrize("name", ["labels", "fractions", "rows"])
def test_labels_and_probabilities_may_be_swapped(name):
    given = {"labels": [0, 1, 1], "fractions": [0.1, 0.5, 1.0], "rows": P, "whole": [0.0, 1.0, 1.0]}
    found = {other: told(probabilities.refuse_swapped, given[name], given[other]) for other in given}
    check("validation", f"swapped {name}", found)


Q = np.array([[0.0, 1.0], [0.4, 0.6], [0.9, 0.2]])
Y = np.array([[0.0, 1.0], [1.0, np.nan], [1.0, 0.0]])
SEVERAL = {
    "zeros and ones": (Y, Q, {}),
    "all known": (np.nan_to_num(Y), Q, {"sample_weight": [1.0, 2.0, 0.5], "clusters": ["a", "b", "a"]}),
    "named": (Y, Q, {"classes": ["x", "y"]}),
    "a frame": (Y, pd.DataFrame(Q, columns=["u", "v"]), {}),
    "misnamed": (Y, Q, {"classes": ["x"]}),
    "above": (Y, Q + np.array([0.0, 1e-9]), {}),
    "below": (Y, Q - np.array([1e-9, 0.0]), {}),
    "wrong where nobody knows": (Y, np.where(np.isnan(Y), 7.0, Q), {}),
    "nan": (Y, np.where(Q == 0.4, NAN, Q), {}),
    "strange": (Y * 2, Q, {}),
    "nothing known": (Y * NAN, Q, {}),
    "one label": (Y[:, 0], Q[:, 0], {}),
    "other shapes": (Y[:2], Q, {}),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_labels_a_row(name):
    y, p, given = SEVERAL[name]
    named = {key: given.get(key) for key in ("sample_weight", "clusters", "classes")}
    found = told(read_labels_of, y, p, *named.values())
    check("validation", f"several labels, {name}", found)
