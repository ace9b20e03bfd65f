"""
For risk and medicine: is 10 % one in ten?
==========================================

A model of risk is judged by slope, intercept, curve and net benefit, each with an interval, and all are of one call.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant
from calibrant.metrics import decision_curve, required_samples
from calibrant.plots import reliability

X, y = load_breast_cancer(return_X_y=True)
malignant = 1 - y
model = make_pipeline(StandardScaler(), LogisticRegression(C=1000, max_iter=5000))
risk = cross_val_predict(model, X[:, :10], malignant, cv=5, method="predict_proba")[:, 1]

# %%
# ``profile="risk"`` has what TRIPOD+AI asks for. A slope below one says that risks are too extreme, as those of an
# overfitted model are; here it does so although the test of all shapes at once sees nothing yet. ``clusters=`` names
# hospitals or patients with several rows, ``groups=`` what to tell figures by.
found = calibrant.measure(malignant, risk, profile="risk")
print(found)

# %%
reliability(found)

# %%
# **Does the error matter?** Net benefit weighs the patients found against those treated in vain, at each threshold.
curve = decision_curve(malignant, risk)
_, ax = plt.subplots()
ax.plot(curve.thresholds, curve.net_benefit, label="treat by the model")
ax.fill_between(curve.thresholds, curve.low, curve.high, alpha=0.2)
ax.plot(curve.thresholds, curve.treat_all, label="treat all")
ax.axhline(0, color="grey", label="treat none")
ax.set(xlabel="threshold", ylabel="net benefit", ylim=(-0.05, 0.42))
ax.legend()

# %%
# **A correction, and another hospital.** A level and a slope are fitted on half of the patients. Where the disease is
# rarer `PriorShift` finds how rare from patients without a diagnosis, with an interval, and refuses where the change
# is of another kind. The warning is honest: 284 patients cannot tell whether the correction helps.
half = len(risk) // 2
shift = calibrant.PriorShift(calibrant.PlattScaling(inputs="probabilities"), inputs="probabilities")
shift.fit(risk[:half], malignant[:half])
elsewhere = np.flatnonzero((np.arange(len(risk)) >= half) & ((malignant == 0) | (np.arange(len(risk)) % 4 == 0)))
shift.adapt(risk[elsewhere])
print(f"prevalence there {malignant[elsewhere].mean():.3f}, found {shift.priors_[1]:.3f}, between", end=" ")
print("{:.3f} and {:.3f}".format(*shift.priors_interval_[1]))

# %%
# **How many patients?** So many see a root mean square error of 0.05 with a power of 80 %.
print(required_samples(0.05, repeats=100))

# %%
# ``calibrant report risks.csv --profile risk`` makes a page of all this for the drawer: curve with its band, decision
# curve, figures by group and TRIPOD+AI's items.
