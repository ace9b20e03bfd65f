"""Public functions called with what is no answer to their question: a CalibrantError, and no exception of others."""

import numpy as np
import pandas as pd
import pytest

import calibrant
from calibrant import metrics
from calibrant.errors import CalibrantError
from calibrant.monitoring import Monitor, OnlineRecalibrator, Pending

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(40, 3))
Y = np.where(RNG.random(40) < 0.6, Z.argmax(axis=1), RNG.integers(0, 3, 40))
P = RNG.beta(2, 4, 40)
E = (RNG.random(40) < P).astype(int)
STRANGE = {
    "array": np.ones(40),
    "no rows": np.array([]),
    "frame": pd.DataFrame({"a": range(40)}),
    "list": [[1.0]],
    "dict": {},
    "beyond floats": 10**400,
    "type": float,
}


class Odd:
    """Says that it is an array, and is none."""

    def __array__(self, *_: object, **__: object) -> None:
        raise RuntimeError("no")

    def __str__(self) -> str:
        return "odd"


def calls(odd):
    """Each with one argument that is neither a word nor a number it knows."""
    online = OnlineRecalibrator()
    waiting = Pending()
    waiting.predicted([1], [0.5])
    waiting.labelled([1], [1])
    fitted = calibrant.make("identity").fit(Z, Y)
    return {
        "make": lambda: calibrant.make(odd),
        "metric of compare": lambda: calibrant.compare(Z, Y, methods=["ts"], cv=2, metric=odd),
        "methods of compare": lambda: calibrant.compare(Z, Y, methods=odd, cv=2),
        "preserve of compare": lambda: calibrant.compare(Z, Y, methods=["ts"], cv=2, preserve=odd),
        "repeats of compare": lambda: calibrant.compare(Z, Y, methods=["ts"], cv=2, repeats=odd),
        "profile of measure": lambda: calibrant.measure(E, P, profile=odd),
        "confidence of measure": lambda: calibrant.measure(E, P, confidence=odd),
        "norm": lambda: metrics.ece(E, P, norm=odd),
        "view": lambda: metrics.ece(E, P, view=odd),
        "state": lambda: metrics.state(odd),
        "question": lambda: Monitor(question=odd),
        "alpha": lambda: Monitor(alpha=odd),
        "answer": lambda: OnlineRecalibrator(answer=odd),
        "distance": lambda: online.regret_bound(odd),
        "close": lambda: waiting.feed(Monitor(), close=odd),
        "monitor": lambda: waiting.feed(odd),
        "label of a batch": lambda: Pending().predicted([1], [0.5], label=odd),
        "path of a report": lambda: calibrant.report(fitted, odd),
        "context of a report": lambda: calibrant.report(fitted, "never.html", odd),
        "path of an export": lambda: calibrant.export(fitted, odd),
        "target of an export": lambda: calibrant.export(fitted, "never.json", to=odd),
    }


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("name", calls(None))
def test_strange_arguments_are_refused_in_words(strange, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name == "methods of compare" and strange in ("dict", "no rows"):
        pytest.skip("no names: the scores as they are, alone")
    with pytest.raises(CalibrantError):
        calls(STRANGE[strange])[name]()


@pytest.mark.parametrize(
    "source",
    [
        Odd(),
        pd.Series([pd.NA] * 40),
        pd.Series(list("ab") * 20, dtype="category"),
        [(Z, 10**400)],
        [(10**400, Y)],
        [(Z, np.array(5))],
        [(Z, np.array([None] * 40))],
        [pd.Series([pd.NA] * 40)],
    ],
    ids=str,
)
def test_sources_that_are_none_are_refused(source):
    with pytest.raises(CalibrantError):
        calibrant.make("ts").fit(calibrant.scan(source))


def test_labels_beside_an_array_are_rows():
    with pytest.raises(CalibrantError, match="inconsistent"):
        calibrant.scan(Z, label=3)


def test_groups_that_have_no_order_or_no_text_are_refused():
    with pytest.raises(CalibrantError, match="order"):
        calibrant.ByGroup(calibrant.make("platt")).fit(Z, Y, groups=np.array([{}] * 40))
    with pytest.raises(CalibrantError, match="text"):
        calibrant.Multicalibrated(calibrant.make("platt")).fit(Z[:, 1] - Z[:, 0], E, groups=np.array([b"\xff"] * 40))


def test_classes_that_are_one_object_are_refused():
    with pytest.raises(CalibrantError, match="classes"):
        metrics.ece(E, P, classes=10**400)


@pytest.mark.parametrize("path", ["a\0b", b"a", 3])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(CalibrantError, match="path"):
        calibrant.make("identity").fit(Z, Y).save(path)


def test_labels_of_a_model_are_refused_in_words():
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(CalibrantError, match="y cannot be read"):
        calibrant.CalibratedModel(LogisticRegression()).fit(Z, 3)
