"""
For language models: judges, answers to choose from, confidences in words
=========================================================================

Three kinds of scores come out of language models, and each needs its own few lines. The rows here are made by chance,
with faults as they are seen in practice; yours are a few hundred answers that people have looked at.
"""

import numpy as np

import calibrant
from calibrant.exports import to_vllm
from calibrant.plots import reliability

rng = np.random.default_rng(0)

# %%
# **One logit for yes**, of a judge, a reranker or a guard. This one is too sure, and says yes too often. Platt
# scaling is what vLLM's pooler can do by itself: its options come out as JSON.
truth = rng.normal(size=3000)
logit = 2.5 * truth + 1.0
right = (rng.random(3000) < 1 / (1 + np.exp(-truth))).astype(int)
judge = calibrant.PlattScaling().fit(logit[:1000], right[:1000])
print(to_vllm(judge))  # for vllm serve --pooler-config

# %%
as_it_comes = calibrant.Identity().fit(logit[:1000], right[:1000])
before = calibrant.measure(right[1000:], as_it_comes.predict_proba(logit[1000:])[:, 1])
after = calibrant.measure(right[1000:], judge.predict_proba(logit[1000:])[:, 1])
reliability(before, after)

# %%
# **Answers to choose from**: the log-probabilities of the tokens A to D. How far off they are differs from subject to
# subject; `ByGroup` gives each a level and a slope of its own, shrunk towards all others', so that a subject of 60
# rows does no harm.
subjects = np.repeat(["law", "physics", "history"], [1500, 1500, 60])
sure = np.select([subjects == "law", subjects == "physics"], [3.0, 1.2], 2.0)
meaning = rng.normal(size=(len(subjects), 4))
tokens = meaning * sure[:, None]
answer = (meaning + rng.gumbel(size=meaning.shape)).argmax(axis=1)
order = rng.permutation(len(subjects))
fitted, rest = order[:1500], order[1500:]
by_subject = calibrant.ByGroup(calibrant.make("ets"))
by_subject.fit(tokens[fitted], answer[fitted], groups=subjects[fitted])
answers = {
    name: calibrant.make(name).fit(tokens[fitted], answer[fitted]).predict_proba(tokens[rest])
    for name in ("identity", "ets")
}
answers["ets by subject"] = by_subject.predict_proba(tokens[rest], groups=subjects[rest])
for name, p in answers.items():
    print(f"{name:15} log-loss {calibrant.metrics.nll(answer[rest], p):.4f}")

# %%
# **Confidences in words**: "I am 95 % sure". They are probabilities with few values, many of them 0.9 and 1. A step
# function with steps between them answers how often each came true; `VennAbers` answers two, for either label of the
# row that is asked about.
said = rng.choice([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0], size=800, p=[0.02, 0.03, 0.05, 0.1, 0.3, 0.3, 0.2])
came_true = (rng.random(800) < 0.35 + 0.5 * said**4).astype(int)
words = calibrant.VennAbers(inputs="probabilities").fit(said[:400], came_true[:400])
values = np.unique(said)
low, high = words.predict_interval(values)
for value, p, a, b in zip(values, words.predict_proba(values)[:, 1], low, high, strict=True):
    print(f"said {value:.2f}: true {p:.2f}, between {a:.2f} and {b:.2f}")
