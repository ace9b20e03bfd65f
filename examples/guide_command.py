"""
For the command line and CI: a gate
===================================
"""

from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

import calibrant
from calibrant.cli.main import main
from calibrant.plots import reliability

X, y = load_digits(return_X_y=True)
p = GaussianNB().fit(X[:600], y[:600]).predict_proba(X[600:])
outputs = str(Path(mkdtemp()) / "outputs.npz")
np.savez(outputs, probs=p, labels=y[600:])

# %%
# The exit code is 1 where a gate fails, so that a pipeline stops.
code = main(["measure", outputs, "--kind", "probs", "--quiet", "--fail-if", "ece>0.05"])
print("exit code", code)

# %%
reliability(calibrant.measure(y[600:], p))
