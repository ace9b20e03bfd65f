"""
For big data: a fit that never holds its rows
=============================================
"""

import numpy as np

import calibrant
from calibrant.plots import reliability


def batches():
    """Start the same batches anew: files, a query, a loader."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=(5000, 3))
        yield 2 * truth, (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)


# %%
# A scan goes wherever arrays go; the map is the one that all rows at once would give.
calibrator = calibrant.make("ets").fit(calibrant.scan(batches))
print(calibrator.n_samples_, "rows;", calibrator.fit_report_)

# %%
scores, labels = next(batches())
reliability(calibrant.measure(labels, calibrator.predict_proba(scores)))
