"""
For scikit-learn: a forest that rounds to trees
===============================================
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import calibrant
from calibrant.plots import reliability

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)

# %%
# A whole classifier with its correction is one estimator, which works in pipelines and searches.
model = calibrant.CalibratedModel(RandomForestClassifier(100, random_state=0), "platt", cv=3).fit(X_train, y_train)
plain = RandomForestClassifier(100, random_state=0).fit(X_train, y_train)
print("plain     ", calibrant.metrics.nll(y_test, plain.predict_proba(X_test)))
print("calibrated", calibrant.metrics.nll(y_test, model.predict_proba(X_test)))

# %%
reliability(calibrant.measure(y_test, model.predict_proba(X_test)))
