"""
For the command line and CI: from a file to a gate
==================================================

What a model said, and what was true, is a file; everything else is a command. The lines below run the program from
Python, so that this page can show what it prints; in a shell they are ``calibrant measure outputs.npz`` and so on.
"""

import os
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

import calibrant
from calibrant.cli.main import main
from calibrant.plots import reliability


def run(line):
    """Run a command as a shell would, and show how it ended."""
    os.chdir(room)
    print(f"$ calibrant {line}")
    code = main([*line.split(), "--quiet"])
    print(f"exit code {code}")


room = Path(mkdtemp())
X, y = load_digits(return_X_y=True)
p = GaussianNB(var_smoothing=0.01).fit(X[:600], y[:600]).predict_proba(X[600:])
np.savez(room / "outputs.npz", probs=p[:600], labels=y[600:1200])  # to fit on
np.savez(room / "new.npz", probs=p[600:], labels=y[1200:])

# %%
# **How true is it?** The verdict is in words, the figures have intervals. ``--fail-if`` makes a gate of any of them:
# the exit code is 1 where one fails, so that a pipeline stops; 2 is a mistake in the call.
run("measure new.npz --fail-if ece.low>0.05")

# %%
# **Correct it**, by a map that the program chooses or that you name, and **gate what is shipped**.
run("fit outputs.npz --method ets --output map.calibrant")
run("apply map.calibrant new.npz --output calibrated.npz")
run("measure calibrated.npz --fail-if ece.low>0.05")

# %%
before, after = np.load(room / "new.npz"), np.load(room / "calibrated.npz")
reliability(calibrant.measure(before["labels"], before["probs"]), calibrant.measure(after["labels"], after["probs"]))

# %%
# **Ship it**: as ONNX, torch, SQL or JSON, or for a page, ``calibrant report outputs.npz --output report.html``.
run("export map.calibrant --to json --output map.json")

# %%
# In GitHub Actions, with the report kept whatever the outcome:
#
# .. code-block:: yaml
#
#    - run: pip install "calibrant[cli]"
#    - run: calibrant report outputs.npz --output report.html
#    - run: calibrant measure outputs.npz --calibrator map.calibrant --fail-if "ece.low > 0.02" --fail-if "p < 0.001"
#    - uses: actions/upload-artifact@v4
#      if: always()
#      with: {name: calibration, path: report.html}
