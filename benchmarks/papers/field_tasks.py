"""Tasks of `field.py`: probabilities of many models, so many rows to fit a map on, and others to judge it by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from frame import load
from networks import keel
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from calibrant.arrays import softmax

STORED = [
    "imdb",
    "soccer_forecasts",
    "newsgroups20",
    "cifar10_vgg16",
    "cifar10_wideresnet",
    "cifar10_overconfident",
    "cifar10_extreme_logits",
    "cifar10_resnet110",
    "fashion_cnn",
    "cifar100_densenet_bc",
    "cifar100_resnet50",
    "tinyimagenet_probe",
]
TABLES = ["magic", "phoneme", "spambase", "ring", "letter", "optdigits", "penbased", "texture", "satimage"]
MODELS = {
    "naive Bayes": lambda: GaussianNB(),
    "forest": lambda: RandomForestClassifier(100, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=60, random_state=0),
}
ROWS = (200, 1000, 5000)
MOST_JUDGED = 5000


@dataclass(frozen=True, order=True)
class Task:
    """A model, the rows to fit on, which draw of them, and how many classes there are."""

    source: str
    rows: int
    draw: int
    classes: int

    @property
    def file(self) -> str:
        return f"{self.source.replace(' ', '-')}-{self.rows}-{self.draw}"


@cache
def probabilities(source: str) -> tuple[np.ndarray, np.ndarray]:
    """Return what a model says of rows it was not trained on, and their labels."""
    if source in STORED:
        rows = load(source)
        return softmax(rows.logits), rows.labels
    model, _, table = source.partition(" on ")
    x, y = keel(table)
    order = np.random.default_rng(0).permutation(len(y))
    own, other = np.split(order, [min(2000, len(y) // 3)])
    fitted = MODELS[model]().fit(x[own], y[own])
    return fitted.predict_proba(x[other]), y[other]


def tasks(sources: list[str], draws: int) -> list[Task]:
    """Return the tasks that leave a thousand rows to judge by and have two rows a class to fit on, on average."""
    found = []
    for source in sources:
        p, y = probabilities(source)
        for rows in ROWS:
            if len(y) - rows >= 1000 and rows >= 2 * p.shape[1]:
                found += [Task(source, rows, draw, p.shape[1]) for draw in range(draws)]
    return found


def split(task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows to fit on, which hold every class (stratified by chance), and up to 5,000 to judge by."""
    p, y = probabilities(task.source)
    rng = np.random.default_rng([11, task.rows, task.draw])
    order = rng.permutation(len(y))
    first = np.unique(y[order], return_index=True)[1]  # one row of each class, so that every library accepts them
    order = np.concatenate([order[first], np.delete(order, first)])
    fit, test = order[: task.rows], order[task.rows : task.rows + MOST_JUDGED]
    return p[fit], y[fit], p[test], y[test]
