"""
For torch: the correction at the end of a network
=================================================

A network that is trained to the last row is surer than it is right. One number mends most of that: a temperature,
fitted on rows that the network was not trained on.
"""

import torch
from sklearn.datasets import load_digits

import calibrant
from calibrant.plots import reliability
from calibrant.torch.losses import FocalLoss

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
seen, held_out, new = slice(0, 200), slice(200, 900), slice(900, None)


def train(loss):
    """Train a small network on 200 rows."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimiser = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(200):
        optimiser.zero_grad()
        loss(net(X[seen]), y[seen]).backward()
        optimiser.step()
    return net.eval()


net = train(torch.nn.CrossEntropyLoss())

# %%
# Maps take tensors as they are, also half and bfloat16. `fit_report_` says whether the map helped on rows it did not
# see.
with torch.no_grad():
    calibrator = calibrant.TemperatureScaling().fit(net(X[held_out]), y[held_out])
print(f"temperature {calibrator.temperature_:.2f}")
print(calibrator.fit_report_)

# %%
# `to_torch` makes a module of any map; it follows the network's dtype and device and has gradients. From here on
# calibrant is not needed: save it, script it, or hand it to `torch.export`.
calibrated = torch.nn.Sequential(net, calibrator.to_torch())
with torch.no_grad():
    before = calibrant.measure(y[new], torch.softmax(net(X[new]), dim=1))
    after = calibrant.measure(y[new], calibrated(X[new]))
reliability(before, after)

# %%
program = torch.export.export(calibrated, (X[:2],))
print(program.module()(X[:2]).sum(dim=1))

# %%
# Losses that keep a network modest come with calibrant too (:doc:`/training`). A map after them still helps, or says
# that it does not.
modest = train(FocalLoss(gamma=3.0))
with torch.no_grad():
    logits = modest(X)
again = calibrant.TemperatureScaling().fit(logits[held_out], y[held_out])
print(f"focal loss: nll {calibrant.metrics.nll(y[new], torch.softmax(logits[new], dim=1)):.3f}, ", end="")
print(
    f"with temperature {again.temperature_:.2f}: {calibrant.metrics.nll(y[new], again.predict_proba(logits[new])):.3f}"
)
