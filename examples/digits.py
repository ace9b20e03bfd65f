"""Train a small classifier on scikit-learn's digits, calibrate it on held-out rows, and judge it on others."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import calibrant
from calibrant.metrics import brier, ece, nll

X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X / 16, y, train_size=150, stratify=y, random_state=0)
X_held, X_test, y_held, y_test = train_test_split(X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0)
model = MLPClassifier((64,), solver="lbfgs", alpha=0.01, max_iter=2000, random_state=0)
model.fit(X_train, y_train)

held, test = model.predict_proba(X_held), model.predict_proba(X_test)
calibrator = calibrant.make("ets", inputs="probabilities").fit(held, y_held)
calibrated = calibrator.predict_proba(test)

print(f"{len(y_held)} held-out rows, {len(y_test)} test rows, temperature {calibrator.temperature_:.2f}")
print(f"{'on the test rows':<24}{'before':>10}{'after':>10}")
for name, metric in (("log-loss", nll), ("Brier score", brier), ("calibration error", ece)):
    print(f"{name:<24}{metric(y_test, test):>10.4f}{metric(y_test, calibrated):>10.4f}")
right = (test.argmax(1) == y_test).mean(), (calibrator.predict(test) == y_test).mean()
print(f"{'accuracy':<24}{right[0]:>10.4f}{right[1]:>10.4f}")
