"""Speed of the metrics beside the peers', in one process: ``python benchmarks/metrics.py [--cpu] [--only NAME]``.

Needs calibrant and the peers (benchmarks/peers-requirements.txt) in one environment. Peers that take (n, K)
probabilities are compared on those, peers for one event on (n,) probabilities. Times are the best of several calls; a
peer that takes longer than the limit is stopped and printed as such. ``--cpu`` counts processor time of all threads
instead of wall time, which is steadier on a busy machine (and gives threads no credit).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import signal
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Metric = Callable[[np.ndarray, np.ndarray], Any]
Contenders = dict[str, tuple[Metric, dict[str, Metric]]]
LIMIT = 30.0


def problem(n: int, k: int, dtype: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident outputs: labels drawn from softmax(z), probabilities softmax(2 z)."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)).astype(np.float32) * 3
    labels = (z + rng.gumbel(size=(n, k)).astype(np.float32)).argmax(axis=1)
    p = np.exp(2 * (z - z.max(axis=1, keepdims=True))).astype(dtype)
    return labels, p / p.sum(axis=1, keepdims=True)


def torch_metric(norm: str) -> Metric:
    import torch
    from torchmetrics.functional.classification import multiclass_calibration_error

    def call(y: np.ndarray, p: np.ndarray) -> float:
        answer = multiclass_calibration_error(
            torch.from_numpy(p), torch.from_numpy(y), num_classes=p.shape[1], n_bins=15, norm=norm
        )
        return float(answer)

    return call


def torch_accuracy(y: np.ndarray, p: np.ndarray) -> float:
    import torch
    from torchmetrics.functional.classification import multiclass_accuracy

    return float(multiclass_accuracy(torch.from_numpy(p), torch.from_numpy(y), num_classes=p.shape[1], average="micro"))


def vector_contenders() -> Contenders:
    """For each metric of (n, K) probabilities, ours and the peers that have it."""
    import calibration
    import netcal.metrics
    import pycalib.metrics as pycalib
    import sklearn.metrics

    from calibrant import metrics as ours

    def one_hot(y: np.ndarray, p: np.ndarray) -> np.ndarray:
        return np.eye(p.shape[1], dtype=np.float32)[y]

    return {
        "ece": (
            ours.ece,
            {
                "netcal": lambda y, p: netcal.metrics.ECE(15).measure(p, y),
                "torchmetrics": torch_metric("l1"),
                "uncertainty-calibration": lambda y, p: calibration.get_ece(p, y, num_bins=15),
                "pycalib": lambda y, p: pycalib.conf_ECE(y, p, bins=15),
            },
        ),
        "mce": (
            ours.mce,
            {
                "netcal": lambda y, p: netcal.metrics.MCE(15).measure(p, y),
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
                "scikit-learn": lambda y, p: sklearn.metrics.brier_score_loss(y, p, labels=np.arange(p.shape[1])),
            },
        ),
        "nll": (
            ours.nll,
            {
                "pycalib": lambda y, p: pycalib.cross_entropy(one_hot(y, p), p),
                "scikit-learn": lambda y, p: sklearn.metrics.log_loss(y, p, labels=np.arange(p.shape[1])),
            },
        ),
        "accuracy": (ours.accuracy, {"torchmetrics": torch_accuracy}),
        "ece_sweep": (ours.ece_sweep, {}),
        "ece_kde": (ours.ece_kde, {}),
        "smece": (ours.smece, {}),
        "ace": (ours.ace, {}),
    }


def event_contenders() -> Contenders:
    """For each metric of one event's probabilities, ours and the peers that have it."""
    import calibre.metrics
    import probcal.metrics as probcal
    import relplot

    from calibrant import metrics as ours

    return {
        "ece": (
            ours.ece,
            {
                "calibre": lambda y, p: calibre.metrics.expected_calibration_error(y, p, n_bins=15),
                "probcal": lambda y, p: probcal.ece(y, p, n_bins=15, strategy="width"),
                "relplot": lambda y, p: relplot.metrics.binnedECE(p, y, nbins=15),
            },
        ),
        "mce": (
            ours.mce,
            {
                "calibre": lambda y, p: calibre.metrics.maximum_calibration_error(y, p, n_bins=15),
                "probcal": lambda y, p: probcal.ece(y, p, n_bins=15, strategy="width", norm="max"),
            },
        ),
        "ece, equal mass": (
            lambda y, p: ours.ece(y, p, edges="equal_mass"),
            {"probcal": lambda y, p: probcal.ece(y, p, n_bins=15, strategy="mass")},
        ),
        "ece_debiased": (ours.ece_debiased, {"probcal": lambda y, p: probcal.ece_debiased(y, p, n_bins=15)}),
        "ece_sweep": (ours.ece_sweep, {"probcal": probcal.ece_sweep}),
        "smece": (
            ours.smece,
            {"relplot": lambda y, p: relplot.metrics.smECE(p, y), "probcal": probcal.smooth_ece},
        ),
        "ks_error": (ours.ks_error, {"probcal (ecce)": probcal.ecce}),
        "brier": (ours.brier, {"probcal": probcal.brier_score}),
        "nll": (ours.nll, {"probcal": probcal.log_loss}),
        "brier_decomposition": (ours.brier_decomposition, {"probcal": probcal.murphy_decomposition}),
        "ece_kde": (ours.ece_kde, {}),
    }


class TooSlow(Exception):
    pass


def _stop(*_: Any) -> None:
    raise TooSlow


def clock(metric: Metric, y: np.ndarray, p: np.ndarray, timer: Callable[[], float]) -> float | str:
    """Best of the calls that fit into a second (at least three, or one where a call takes seconds)."""
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    best, calls, end = np.inf, 0, time.perf_counter() + 1.0
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            while calls < 1 or (calls < 500 and time.perf_counter() < end + 3 * (calls < 3)):
                start = timer()
                metric(y, p)
                best, calls = min(best, timer() - start), calls + 1
    except TooSlow:
        return f"> {LIMIT:g} s"
    except Exception as error:
        return type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return best


def shown(took: float | str) -> str:
    return took if isinstance(took, str) else f"{1e3 * took:.3g} ms"


def table(title: str, rows: Contenders, y: np.ndarray, p: np.ndarray, options: argparse.Namespace) -> None:
    timer = time.process_time if options.cpu else time.perf_counter
    print(f"\n## {title}, {p.dtype}{', processor time' if options.cpu else ''}\n")
    print("| metric | calibrant | fastest peer | ratio | all peers |\n| --- | --- | --- | --- | --- |")
    for name, (ours, peers) in rows.items():
        if options.only and options.only not in name:
            continue
        own = clock(ours, y, p, timer)
        times = {peer: clock(metric, y, p, timer) for peer, metric in peers.items()}
        known = {peer: took for peer, took in times.items() if not isinstance(took, str)}
        fastest = min(known, key=lambda peer: known[peer]) if known else None
        ratio = f"{known[fastest] / own:.1f}" if fastest and not isinstance(own, str) else ""
        everyone = ", ".join(f"{peer} {shown(took)}" for peer, took in times.items())
        print(f"| {name} | {shown(own)} | {fastest or ''} | {ratio} | {everyone} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="only metrics whose name contains this")
    parser.add_argument("--cpu", action="store_true", help="processor time instead of wall time")
    parser.add_argument("--tables", default="vectors-small,events-small,events,vectors")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for which in options.tables.split(","):
        n, k, dtype = (1000, 10, np.float64) if which.endswith("small") else (25_000, 1000, np.float32)
        if which.startswith("events"):
            y, p = problem(n, 10, np.float64)
            best = p.argmax(axis=1)
            y, p = (best == y).astype(np.int64), p[np.arange(n), best]
            table(f"{n:,} events", event_contenders(), y, p, options)
        else:
            table(f"{n:,} × {k:,}", vector_contenders(), *problem(n, k, dtype), options)


if __name__ == "__main__":
    main()
