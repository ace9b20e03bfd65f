"""Log-losses and Brier scores of other libraries' maps on the draws of `field.py`: ``python field_peers.py FOLDER``.

Runs in the peers' environment. Every FOLDER/*.npz holds fit, fit_labels, test and test_labels, with probabilities; a
.json beside it gets each method's figures, or nothing where it cannot. It goes on where it was stopped.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from choice_peers import Map, peers

SMALLEST = np.finfo(np.float64).eps  # a probability of zero counts as this, for all alike


def figures(p: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return log-loss and Brier score."""
    p = np.asarray(p, dtype=np.float64)
    said = p[np.arange(len(p)), labels]
    brier = (p**2).sum(axis=1) - 2 * said + 1
    return {"nll": float(-np.log(np.clip(said, SMALLEST, 1)).mean()), "brier": float(brier.mean())}


def netcal_temperature(fit: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
    from netcal.scaling import TemperatureScaling

    binary = fit.shape[1] == 2
    model = TemperatureScaling()
    model.fit(fit[:, 1] if binary else fit, labels)
    p = np.asarray(model.transform(test[:, 1] if binary else test)).squeeze()
    return np.stack([1 - p, p], axis=1) if binary else p


def all_peers() -> list[tuple[str, Map]]:
    return [*peers(), ("netcal temperature", netcal_temperature)]


def judged(path: Path) -> dict[str, dict[str, float]]:
    """Return the figures of every method that can."""
    with np.load(path) as file:
        fit, fit_labels, test, test_labels = (file[key] for key in ("fit", "fit_labels", "test", "test_labels"))
    found = {}
    for name, answer in all_peers():
        try:
            with contextlib.redirect_stdout(sys.stderr):
                p = answer(fit, fit_labels, test)
        except Exception:  # a peer that cannot takes no part
            continue
        if p.shape == test.shape and np.isfinite(p).all():
            found[name] = figures(p, test_labels)
    return found


def main(folder: Path) -> None:
    for path in sorted(folder.glob("*.npz")):
        out = path.with_suffix(".json")
        if not out.exists():
            out.write_text(json.dumps(judged(path)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
