"""
For risk and medicine: is 10 % one in ten?
==========================================
"""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant
from calibrant.plots import reliability

X, y = load_breast_cancer(return_X_y=True)
model = make_pipeline(StandardScaler(), LogisticRegression(C=1000, max_iter=5000))
p = cross_val_predict(model, X[:, :10], y, cv=5, method="predict_proba")

# %%
# Errors with intervals, a test, and a verdict in words.
print(calibrant.measure(y, p))

# %%
reliability(calibrant.measure(y, p))
