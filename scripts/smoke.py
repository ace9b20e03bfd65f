"""What an installed calibrant must be able to do without a compiler and without extras."""

import tempfile
from pathlib import Path

import numpy as np

import calibrant

rng = np.random.default_rng(0)
z = rng.normal(size=(400, 3)) * 3
y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
for name in ("ts", "irova", "sms"):
    fitted = calibrant.make(name).fit(z, y)
    with tempfile.TemporaryDirectory() as room:
        path = Path(room) / "map.calibrant"
        fitted.save(path)
        assert (calibrant.load(path).predict_proba(z) == fitted.predict_proba(z)).all()
    fitted.to_json()
print(calibrant.measure(y, calibrant.make("ts").fit(z, y).predict_proba(z)))
print(f"calibrant {calibrant.__version__} works, from {Path(calibrant.__file__).parent}")
