"""Scores that look like a real classifier's: most mass on a few confusable classes, over-confident, unequal classes."""

from __future__ import annotations

import numpy as np


def realistic(n: int, k: int, seed: int = 0, temperature: float = 1.6) -> tuple[np.ndarray, np.ndarray]:
    """Return float32 logits (n, k) and labels.

    True log-odds are low-rank (classes resemble one another) plus noise and a class prior; labels are drawn from their
    softmax; the model reports them multiplied by ``temperature`` with a scale and an offset of each class's own.
    """
    rng = np.random.default_rng(seed)
    rank = min(k, 24)
    factors = rng.normal(size=(k, rank)).astype(np.float32)
    rows = rng.normal(size=(n, rank)).astype(np.float32) * 1.1
    truth = rows @ factors.T
    truth += rng.normal(size=k).astype(np.float32) * 0.3
    labels = np.empty(n, dtype=np.int64)
    for start in range(0, n, 2000):
        block = truth[start : start + 2000]
        labels[start : start + 2000] = (block + rng.gumbel(size=block.shape)).argmax(axis=1)
    truth *= (temperature * np.exp(rng.normal(size=k) * 0.05)).astype(np.float32)
    truth += (rng.normal(size=k) * 0.2).astype(np.float32)
    return truth, labels
