"""Log-losses of other libraries' maps on draws that `choice.py` stored: ``python choice_peers.py FOLDER``.

Runs in the peers' environment. Every FOLDER/*.npz holds fit, fit_labels, test and test_labels, with probabilities; a
.peers.json beside it gets the log-loss of each method, or nothing where it cannot. It goes on where it was stopped.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

Map = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class Said(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose rows are what it says of them."""

    def __init__(self, k: int = 2) -> None:
        self.k = k
        self.classes_ = np.arange(k)

    def fit(self, X: np.ndarray, y: np.ndarray) -> Said:
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return X

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X.argmax(axis=1)


def scikit_learn(method: str) -> Map:
    def answer(fit: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
        model = CalibratedClassifierCV(FrozenEstimator(Said(fit.shape[1])), method=method)
        return model.fit(fit, labels).predict_proba(test)

    return answer


def probmetrics(name: str) -> Map:
    def answer(fit: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
        from probmetrics.calibrators import get_calibrator

        model = get_calibrator(name)
        model.fit(fit, labels)
        return np.asarray(model.predict_proba(test))

    return answer


def venn_abers(fit: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
    from venn_abers import VennAbersCalibrator

    if fit.shape[1] > 20:  # one pair of classes at a time
        raise ValueError("too many classes")
    return np.asarray(VennAbersCalibrator().predict_proba(p_cal=fit, y_cal=labels, p_test=test))


def betacal(fit: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
    from betacal import BetaCalibration

    if fit.shape[1] == 2:
        p = BetaCalibration("abm").fit(fit[:, 1], labels).predict(test[:, 1])
        return np.stack([1 - p, p], axis=1)
    columns = [BetaCalibration("abm").fit(fit[:, k], labels == k).predict(test[:, k]) for k in range(fit.shape[1])]
    p = np.stack(columns, axis=1)
    return p / p.sum(axis=1, keepdims=True)


def peers() -> Iterator[tuple[str, Map]]:
    for method in ("sigmoid", "isotonic", "temperature"):
        yield f"scikit-learn {method}", scikit_learn(method)
    for name in ("ts-mix", "svs", "sms"):
        yield f"probmetrics {name}", probmetrics(name)
    yield "venn-abers", venn_abers
    yield "betacal", betacal


def losses(path: Path) -> dict[str, float]:
    with np.load(path) as file:
        fit, fit_labels, test, test_labels = (file[key] for key in ("fit", "fit_labels", "test", "test_labels"))
    found = {}
    for name, answer in peers():
        try:
            with contextlib.redirect_stdout(sys.stderr):
                p = answer(fit, fit_labels, test)
        except Exception:  # a peer that cannot takes no part
            continue
        chosen = np.clip(p[np.arange(len(p)), test_labels].astype(np.float64), np.finfo(np.float64).eps, 1.0)
        if np.isfinite(chosen).all():
            found[name] = float(-np.log(chosen).mean())
    return found


def main(folder: Path) -> None:
    for path in sorted(folder.glob("*.npz")):
        out = path.with_suffix(".peers.json")
        if not out.exists():
            out.write_text(json.dumps(losses(path)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
