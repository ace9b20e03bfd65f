"""
For scikit-learn: a classifier whose probabilities can be believed
==================================================================

`CalibratedModel` goes around any classifier, as `CalibratedClassifierCV` does. Naive Bayes on handwritten digits is
right five times in six and sure of itself every time.
"""

from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant
from calibrant.plots import reliability

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
plain = GaussianNB().fit(X_train, y_train)
before = calibrant.measure(y_test, plain.predict_proba(X_test))
print(before.verdict)

# %%
# The map is fitted on rows that the model of each split was not trained on. Without a name it is `blend`, a mixture
# of maps of every kind; any other name of the registry serves (:doc:`/methods/index`). Beside it scikit-learn's own
# two methods:
model = calibrant.CalibratedModel(GaussianNB())
others = {how: CalibratedClassifierCV(GaussianNB(), method=how) for how in ("sigmoid", "isotonic")}
for name, fitted in {"plain": plain, **others, "calibrant": model}.items():
    fitted.fit(X_train, y_train)
    loss = log_loss(y_test, fitted.predict_proba(X_test))
    print(f"{name:10} log-loss {loss:.3f}  accuracy {fitted.score(X_test, y_test):.3f}")

# %%
# On the diagonal what is said comes true. The plain model says "certain" of nearly every row.
after = calibrant.measure(y_test, model.predict_proba(X_test))
reliability(before, after)

# %%
# It is an ordinary estimator: pipelines, searches and `clone` work, and the map is a parameter like any other.
pipeline = make_pipeline(StandardScaler(), calibrant.CalibratedModel(GaussianNB(), "ts", cv=3))
grid = {"calibratedmodel__calibrator": ["ts", "vector"], "calibratedmodel__estimator__var_smoothing": [1e-9, 0.1]}
search = GridSearchCV(pipeline, grid, scoring="neg_log_loss", cv=3).fit(X_train, y_train)
print(search.best_params_, f"log-loss {log_loss(y_test, search.predict_proba(X_test)):.3f}")

# %%
# A model that is trained already stays as it is: fit a map on its answers to rows it has not seen. `compare` says
# which, and ``refit_`` is that one, fitted on all rows given; ``calibrator.save(path)`` writes it as plain numbers.
half = len(y_test) // 2
scores = plain.predict_proba(X_test)
found = calibrant.compare(scores[:half], y_test[:half], inputs="probabilities", methods="fast")
print(found.reason)
calibrator = found.refit_
print(f"log-loss on the other half {log_loss(y_test[half:], calibrator.predict_proba(scores[half:])):.3f}")
