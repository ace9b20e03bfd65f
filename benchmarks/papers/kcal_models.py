"""What the studies of paper 001 share: networks by name, KCal in the paper's form and in ours, and its figures."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np
from frame import load

import calibrant
from calibrant.metrics import cwece, ece

SETS = ["fashion_cnn", "tinyimagenet_probe", "imagenet_1000images"]
FIGURES = {"accuracy": "accuracy", "class-wise": "class-wise error", "ece": "ECE", "brier": "Brier", "nll": "NLL"}
EVERY_ROW = 10**9  # a capacity that is never reached: one kernel on every row, as published, never class means


def figures(p: np.ndarray, label: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the paper's figures: 20 bins of equal mass, entries above max(.01, 1/K), Brier of the top label."""
    p = p.astype(np.float64)
    rows = np.arange(len(y))
    right, confidence = label == y, p[rows, label]
    return {
        "accuracy": float(right.mean()),
        "class-wise": cwece(y, p, bins=20, edges="equal_mass", threshold="kcal"),
        "ece": ece(right.astype(int), confidence, bins=20, edges="equal_mass"),
        "brier": float(((confidence - right) ** 2).mean()),
        "nll": float(-np.log(np.maximum(p[rows, y], 1e-10)).mean()),
    }


def judge(model: calibrant.Calibrator, scores: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the figures of a fitted map."""
    return figures(model.predict_proba(scores), model.predict(scores), y)


@cache
def network(name: str, loss: str = "cross-entropy") -> Any:
    """Return a network's outputs by name; ``loss`` trains it otherwise."""
    import networks
    from torch import nn

    from calibrant.torch.losses import FocalLoss, MMCELoss

    losses = {"cross-entropy": nn.functional.cross_entropy, "focal": FocalLoss(3.0), "mmce": MMCELoss(2.0)}
    recipes = {"digits": networks.digits, "letters": networks.letters}
    base = name.removesuffix(", other patients")
    if base in recipes:
        recipe = recipes[base]()
        made = recipe.of_patients if name != base else recipe.outputs
        return made(loss=losses[loss])
    rows = load(name)
    first = {"fashion_cnn": min(6000, len(rows.labels) // 2), "tinyimagenet_probe": 5050, "imagenet_1000images": 500}[
        name
    ]
    assert rows.embeddings is not None
    return networks.stored(name, rows.logits, rows.embeddings.astype(np.float32), rows.labels, first)


@cache
def learnt(name: str, kind: str, dim: int | None = None) -> Any:
    """Return KCal with its projection learnt on the training rows, once for all splits."""
    outputs = network(name)
    rows = outputs.logits[0] if kind == "kcal-logits" else outputs.embeddings[0]
    options = {} if dim is None else {"dim": dim}
    model = calibrant.make(kind, random_state=0, classes=np.arange(outputs.logits[0].shape[1]), **options)
    return model.fit_projection(rows, outputs.labels[0])


def kernel(name: str, kind: str = "kcal", dim: int | None = None, ours: bool = False) -> Any:
    """Return a KCal to fit, with the projection that is learnt once: as published, or with our defaults."""
    return copy.deepcopy(learnt(name, kind, dim)).set_params(capacity=None if ours else EVERY_ROW)
