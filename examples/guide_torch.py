"""
For torch: a temperature at the end of a network
================================================
"""

import torch
from sklearn.datasets import load_digits

import calibrant
from calibrant.plots import reliability

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimiser = torch.optim.Adam(net.parameters(), 0.01)
for _ in range(200):
    optimiser.zero_grad()
    torch.nn.functional.cross_entropy(net(X[:200]), y[:200]).backward()
    optimiser.step()

# %%
# Fit on rows the network has not seen, and put the map behind it as a module.
calibrator = calibrant.TemperatureScaling().fit(net(X[200:900]).detach(), y[200:900])
calibrated = torch.nn.Sequential(net, calibrator.to_torch())
print(calibrator.fit_report_)

# %%
reliability(calibrant.measure(y[900:].numpy(), calibrated(X[900:]).detach().numpy()))
