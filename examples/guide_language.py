"""
For language models: the score of a judge
=========================================
"""

import numpy as np

import calibrant
from calibrant.exports import to_vllm
from calibrant.plots import reliability

# %%
# A judge or reranker answers one logit for yes. Here it is too sure, and shifted; in your case these are the logits of
# a few hundred answers that people have looked at.
rng = np.random.default_rng(0)
truth = rng.normal(size=3000)
logit = 2.5 * truth + 1.0
right = (rng.random(3000) < 1 / (1 + np.exp(-truth))).astype(int)
calibrator = calibrant.PlattScaling().fit(logit[:1000], right[:1000])
print(to_vllm(calibrator))  # for vllm serve --pooler-config

# %%
reliability(calibrant.measure(right[1000:], calibrator.predict_proba(logit[1000:])[:, 1]))
