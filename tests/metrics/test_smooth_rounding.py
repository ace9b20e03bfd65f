"""The fixed point of the smooth error exists where its bracket is closed by rounding alone."""

from pathlib import Path

import numpy as np

from calibrant.metrics import smece


def test_resamples_of_confident_outputs_have_a_smooth_error(shared_data: Path) -> None:
    file = np.load(shared_data / "top1_guo_models.npz")
    rng = np.random.default_rng(0)
    for name in ("resnet110_c10", "densenet40_c100"):
        p, y = file[f"{name}_confidence"].astype(float), file[f"{name}_correct"].astype(int)
        for _ in range(15):
            weights = np.bincount(rng.integers(0, len(y), len(y)), minlength=len(y)).astype(float)
            top, right = np.maximum(p, 1 - p), np.where(p > 0.5, y, 1 - y)
            assert 0 <= smece(right, top, sample_weight=weights) <= 1
