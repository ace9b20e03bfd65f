"""Every metric that a peer has too: ours and theirs, as functions of (labels, probabilities)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from calibrant import metrics as ours

Metric = Callable[[np.ndarray, np.ndarray], Any]
Contenders = dict[str, tuple[Metric, dict[str, Metric]]]


class Peer:
    """A peer's module, imported when first called, so that one that is not installed is only its own row."""

    def __init__(self, module: str):
        self.module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.module), name)


def torch_metric(norm: str) -> Metric:
    def call(y: np.ndarray, p: np.ndarray) -> float:
        import torch
        from torchmetrics.functional.classification import multiclass_calibration_error

        answer = multiclass_calibration_error(
            torch.from_numpy(p), torch.from_numpy(y), num_classes=p.shape[1], n_bins=15, norm=norm
        )
        return float(answer)

    return call


def torch_accuracy(y: np.ndarray, p: np.ndarray, top_k: int = 1) -> float:
    import torch
    from torchmetrics.functional.classification import multiclass_accuracy

    answer = multiclass_accuracy(
        torch.from_numpy(p), torch.from_numpy(y), num_classes=p.shape[1], average="micro", top_k=top_k
    )
    return float(answer)


def one_hot(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    return np.eye(p.shape[1], dtype=np.float32)[y]


def vector_contenders() -> Contenders:
    """For each metric of (n, K) probabilities, ours and the peers that have it."""
    calibration, netcal, pycalib, sklearn = map(
        Peer, ("calibration", "netcal.metrics", "pycalib.metrics", "sklearn.metrics")
    )

    return {
        "ece": (
            ours.ece,
            {
                "netcal": lambda y, p: netcal.ECE(15).measure(p, y),
                "torchmetrics": torch_metric("l1"),
                "uncertainty-calibration": lambda y, p: calibration.get_ece(p, y, num_bins=15),
                "pycalib": lambda y, p: pycalib.conf_ECE(y, p, bins=15),
            },
        ),
        "mce": (
            ours.mce,
            {
                "netcal": lambda y, p: netcal.MCE(15).measure(p, y),
                "torchmetrics": torch_metric("max"),
                "pycalib": lambda y, p: pycalib.conf_MCE(y, p, bins=15),
            },
        ),
        "ece, norm 2": (lambda y, p: ours.ece(y, p, norm=2), {"torchmetrics": torch_metric("l2")}),
        "ece, equal mass": (
            lambda y, p: ours.ece(y, p, edges="equal_mass"),
            {"uncertainty-calibration": lambda y, p: calibration.get_ece_em(p, y, num_bins=15)},
        ),
        "ece_debiased": (
            ours.ece_debiased,
            {"uncertainty-calibration": lambda y, p: calibration.get_top_calibration_error(p, y)},
        ),
        "cwece": (ours.cwece, {"pycalib": lambda y, p: pycalib.classwise_ECE(y, p, bins=15)}),
        "debiased, class-wise": (
            lambda y, p: ours.calibration_error(y, p, estimator="debiased", view="class_wise"),
            {"uncertainty-calibration": lambda y, p: calibration.get_calibration_error(p, y)},
        ),
        "brier": (
            ours.brier,
            {
                "pycalib": lambda y, p: pycalib.brier_score(one_hot(y, p), p),
                "scikit-learn": lambda y, p: sklearn.brier_score_loss(y, p, labels=np.arange(p.shape[1])),
            },
        ),
        "nll": (
            ours.nll,
            {
                "pycalib": lambda y, p: pycalib.cross_entropy(one_hot(y, p), p),
                "scikit-learn": lambda y, p: sklearn.log_loss(y, p, labels=np.arange(p.shape[1])),
            },
        ),
        "accuracy": (ours.accuracy, {"torchmetrics": torch_accuracy}),
        "top-5 accuracy": (
            ours.top_k_accuracy,
            {
                "torchmetrics": lambda y, p: torch_accuracy(y, p, 5),
                "scikit-learn": lambda y, p: sklearn.top_k_accuracy_score(y, p, k=5, labels=np.arange(p.shape[1])),
            },
        ),
        "ece_sweep": (ours.ece_sweep, {}),
        "ece_kde": (ours.ece_kde, {}),
        "smece": (ours.smece, {}),
        "ace": (ours.ace, {}),
    }


def event_contenders() -> Contenders:
    """For each metric of one event's probabilities, ours and the peers that have it."""
    calibre, probcal, relplot = map(Peer, ("calibre.metrics", "probcal.metrics", "relplot.metrics"))

    return {
        "ece": (
            ours.ece,
            {
                "calibre": lambda y, p: calibre.expected_calibration_error(y, p, n_bins=15),
                "probcal": lambda y, p: probcal.ece(y, p, n_bins=15, strategy="width"),
                "relplot": lambda y, p: relplot.binnedECE(p, y, nbins=15),
            },
        ),
        "mce": (
            ours.mce,
            {
                "calibre": lambda y, p: calibre.maximum_calibration_error(y, p, n_bins=15),
                "probcal": lambda y, p: probcal.ece(y, p, n_bins=15, strategy="width", norm="max"),
            },
        ),
        "ece, equal mass": (
            lambda y, p: ours.ece(y, p, edges="equal_mass"),
            {"probcal": lambda y, p: probcal.ece(y, p, n_bins=15, strategy="mass")},
        ),
        "ece_debiased": (ours.ece_debiased, {"probcal": lambda y, p: probcal.ece_debiased(y, p, n_bins=15)}),
        "ece_sweep": (ours.ece_sweep, {"probcal": lambda y, p: probcal.ece_sweep(y, p)}),
        "smece": (
            ours.smece,
            {"relplot": lambda y, p: relplot.smECE(p, y), "probcal": lambda y, p: probcal.smooth_ece(y, p)},
        ),
        "ks_error": (ours.ks_error, {"probcal (ecce)": lambda y, p: probcal.ecce(y, p)}),
        "brier": (ours.brier, {"probcal": lambda y, p: probcal.brier_score(y, p)}),
        "nll": (ours.nll, {"probcal": lambda y, p: probcal.log_loss(y, p)}),
        "brier_decomposition": (ours.brier_decomposition, {"probcal": lambda y, p: probcal.murphy_decomposition(y, p)}),
        "ece_kde": (ours.ece_kde, {}),
    }
