"""Fit probmetrics' maps on one set, in the peers' environment, and print figures: ``python peer_quality.py SET.npz``.

SET.npz holds fit, fit_labels, test and test_labels, with probabilities. Prints one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import warnings

import numpy as np

from figures import figures

NAMES = ("ts-mix", "svs", "sms")


def main(path: str) -> None:
    from probmetrics.calibrators import get_calibrator

    with np.load(path) as file:
        fit, fit_labels, test, test_labels = (file[key] for key in ("fit", "fit_labels", "test", "test_labels"))
    found = {}
    for name in NAMES:
        start = time.process_time()
        try:
            with contextlib.redirect_stdout(sys.stderr):
                model = get_calibrator(name)
                model.fit(fit, fit_labels)
                seconds = time.process_time() - start
                found[f"probmetrics {name}"] = {**figures(model.predict_proba(test), test_labels), "seconds": seconds}
        except Exception as error:  # a peer that cannot is a row that says so
            found[f"probmetrics {name}"] = {"error": f"{type(error).__name__}: {error}"[:90]}
    print(json.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1])
