"""Run one contender in a process of its own and print what it took: ``python contender.py NAME SCORES.npy LABELS.npy``.

Every contender is a function (logits, labels) -> predict, where predict maps logits to probabilities. The names that
start with "calibrant" need our package, the others the peers' environment. Prints one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Predict = Callable[[np.ndarray], np.ndarray]


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def ours(name: str, **parameters: Any) -> Callable[[np.ndarray, np.ndarray], Predict]:
    def fit(z: np.ndarray, y: np.ndarray) -> Predict:
        import calibrant

        return calibrant.make(name, **parameters).fit(z, y).predict_proba

    return fit


def sklearn_temperature(z: np.ndarray, y: np.ndarray) -> Predict:
    from sklearn.calibration import _TemperatureScaling

    return _TemperatureScaling().fit(z, y).predict


def netcal_temperature(z: np.ndarray, y: np.ndarray) -> Predict:
    from netcal.scaling import TemperatureScaling

    model = TemperatureScaling()
    model.fit(softmax(z.astype(np.float64)), y)  # in float32 it stays at T = 1
    return lambda s: model.transform(softmax(s.astype(np.float64)))


def probmetrics(name: str) -> Callable[[np.ndarray, np.ndarray], Predict]:
    def fit(z: np.ndarray, y: np.ndarray) -> Predict:
        from probmetrics.calibrators import get_calibrator

        model = get_calibrator(name)
        model.fit(softmax(z), y)
        return lambda s: model.predict_proba(softmax(s))

    return fit


def torch_lbfgs(shape: str, rate: float = 1.0, steps: int = 100) -> Callable[[np.ndarray, np.ndarray], Predict]:
    """The usual snippet: parameters, cross-entropy, L-BFGS; converged at rate 1, its published form is 0.01 and 50."""

    def fit(z: np.ndarray, y: np.ndarray) -> Predict:
        import torch

        scores, labels = torch.from_numpy(z), torch.from_numpy(y)
        k = z.shape[1]
        if shape == "temperature":
            parameters = [torch.nn.Parameter(torch.ones(1) * 1.5)]
        elif shape == "vector":
            parameters = [torch.nn.Parameter(torch.ones(k)), torch.nn.Parameter(torch.zeros(k))]
        else:
            parameters = [torch.nn.Parameter(torch.eye(k)), torch.nn.Parameter(torch.zeros(k))]

        def apply(s: torch.Tensor) -> torch.Tensor:
            if shape == "temperature":
                return s / parameters[0]
            return s * parameters[0] + parameters[1] if shape == "vector" else s @ parameters[0].T + parameters[1]

        optimizer = torch.optim.LBFGS(
            parameters, lr=rate, max_iter=steps, line_search_fn=None if rate < 1 else "strong_wolfe"
        )

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(apply(scores), labels)
            loss.backward()
            return loss

        optimizer.step(closure)

        def predict(s: np.ndarray) -> np.ndarray:
            with torch.no_grad():
                return torch.softmax(apply(torch.from_numpy(s)), 1).numpy()

        return predict

    return fit


CONTENDERS: dict[str, Callable[[np.ndarray, np.ndarray], Predict]] = {
    "calibrant ts": ours("ts"),
    "calibrant ts brier": ours("ts", loss="brier"),
    "calibrant ets": ours("ets"),
    "calibrant vector": ours("vector"),
    "calibrant matrix": ours("matrix"),
    "calibrant dirichlet": ours("dirichlet"),
    "calibrant svs": ours("svs"),
    "calibrant sms": ours("sms"),
    "scikit-learn temperature": sklearn_temperature,
    "netcal temperature": netcal_temperature,
    "probmetrics temperature": probmetrics("temp-scaling"),
    "torch snippet temperature": torch_lbfgs("temperature", 0.01, 50),
    "torch temperature": torch_lbfgs("temperature"),
    "torch vector": torch_lbfgs("vector"),
    "torch matrix": torch_lbfgs("matrix"),
    "probmetrics svs": probmetrics("svs"),
    "probmetrics sms": probmetrics("sms"),
    "probmetrics logistic": probmetrics("logistic"),
}


def forget_peak() -> None:
    """Let the peak of this process's memory begin anew (Linux): what imports and the warm-up took is not the fit's."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def memory(kind: str) -> float:
    """Peak ("VmHWM") or present ("VmRSS") resident memory of this process, in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024.0 for line in file if line.startswith(kind))


def nll(p: np.ndarray, y: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        return float(-np.log(p[np.arange(len(y)), y].astype(np.float64)).mean())


def main() -> None:
    name, scores, labels, repeats = sys.argv[1], np.load(sys.argv[2]), np.load(sys.argv[3]), int(sys.argv[4])
    warnings.simplefilter("ignore")
    fit = CONTENDERS[name]
    n = len(scores) // 2 if len(sys.argv) > 5 else len(scores)  # a fifth argument: judge on the second half
    train, y = np.ascontiguousarray(scores[:n]), labels[:n]
    fit(train[:200].copy(), y[:200])  # imports and lazy set-up are not what is timed
    forget_peak()
    before = memory("VmRSS")
    times, processor, predict = [], [], None
    for _ in range(repeats):
        start, used = time.perf_counter(), time.process_time()
        predict = fit(train, y)
        times.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
    beyond = max(0.0, memory("VmHWM") - before)
    result = {"name": name, "seconds": min(times), "processor": min(processor), "beyond": beyond, "input": train.nbytes}
    assert predict is not None
    if len(sys.argv) > 5:
        result["nll"] = nll(predict(scores[n:]), labels[n:])
    print(json.dumps(result))


if __name__ == "__main__":
    main()
