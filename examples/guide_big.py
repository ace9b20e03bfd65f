"""
For big data: fits that never hold their rows, and watching what arrives
========================================================================

A scan reads rows wherever they are, in blocks, as often as a fit needs. The map is the one that all rows at once
would give.
"""

from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import calibrant
from calibrant import plots
from calibrant.monitoring import Monitor

room = Path(mkdtemp())
REGIONS = np.array(["north", "south"])


def outputs(seed, n=20_000, drift=0.0):
    """Make the outputs of a model that is too sure, and more so in the south; a drift makes it wrong."""
    rng = np.random.default_rng(seed)
    region = rng.integers(0, 2, size=n)
    seen = rng.normal(size=(n, 3))
    truth = seen + np.array([0.0, drift, 0.0])
    label = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    return (2.0 + region[:, None]) * seen, label, REGIONS[region]


for part in range(5):
    logits, label, region = outputs(part)
    np.savez(room / f"part-{part}.npz", logits=logits.astype(np.float32), label=label, region=region)

# %%
# Files by a pattern; ``memory`` says how much room blocks may take. Parquet, Arrow, CSV, a database, a DataLoader,
# Dask and Spark are read in the same way (:doc:`/scale`).
data = calibrant.scan(str(room / "part-*.npz"), scores="logits", label="label", group="region", memory="100MB")
calibrator = calibrant.make("ets").fit(data)
print(calibrator.n_samples_, "rows")
print(calibrator.fit_report_)

# %%
# Measure through the map, again without holding the rows, and by group: one map for all leaves the south too sure.
found = calibrant.measure(data.mapped(calibrator))
print(found.verdict)
for name, part in found.groups.items():
    print(name, part.verdict)

# %%
plots.reliability(calibrant.measure(data, inputs="logits"), found)

# %%
# Files to files; new columns stand beside the old ones.
calibrant.apply(calibrator, data, to=room / "calibrated")
print(sorted(path.name for path in (room / "calibrated").iterdir()))

# %%
# **Watching.** Labels arrive by the week. The monitor looks every week, as often as you like, and its false-alarm
# rate holds for its whole life; its state is a few kilobytes of JSON. In week 12 the world changes.
monitor = Monitor()
for week in range(1, 19):
    logits, label, _ = outputs(100 + week, n=400, drift=0.6 if week >= 12 else 0.0)
    monitor.update(label, calibrator.predict_proba(logits), label=f"week {week}")
print(monitor.findings().verdict)
print(monitor.findings().advice)

# %%
plots.monitor(monitor)
