"""Scores, labels and what belongs to them, as a file held them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..types import Integers
from ..validation import says_nothing
from .roles import FIT, TEST


@dataclass(frozen=True, eq=False)
class Named:
    """Scores with the names of their columns, as a frame has them."""

    values: NDArray[Any]
    columns: tuple[str, ...]

    def to_numpy(self) -> NDArray[Any]:
        """Return the scores alone."""
        return self.values


@dataclass(frozen=True, eq=False)
class Rows:
    """One set of rows.

    Attributes
    ----------
    scores : array of shape (n, K), or (n,) for two classes
        The embeddings where the file has nothing else.
    labels : array of shape (n,), or None where the file has none
    embeddings : array of shape (n, d), or None
    weights, groups, clusters : array of shape (n,), or None
    keys : dict
        The key or column each of them came from.
    sources : tuple of str
        The columns of a table that hold the scores.
    places : array of shape (n,), or None
        Where in the table these rows are; None for all of them, in order.
    """

    scores: NDArray[Any]
    labels: NDArray[Any] | None = None
    embeddings: NDArray[Any] | None = None
    weights: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    clusters: NDArray[Any] | None = None
    keys: Mapping[str, str] | None = None
    sources: tuple[str, ...] = ()
    places: Integers | None = None

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def together(self) -> NDArray[Any] | None:
        """Which rows depend on each other: those of a cluster, or else those of a group."""
        return self.groups if self.clusters is None else self.clusters


@dataclass(frozen=True, eq=False)
class Dataset:
    """What was read from a file.

    Attributes
    ----------
    path : str
    kind : {"logits", "probabilities", "embeddings"}
        The last where the file has embeddings and no scores.
    parts : dict of Rows
        Under "" where there is no split, else under "val", "test" or the name in the keys.
    classes : array of shape (K,)
        The label of each column of the scores; of embeddings alone, those that the labels or a key ``classes`` name.
    class_names : sequence of str
        What to call them: the names of the columns or of a key ``classes`` where there are such.
    digest : str
        SHA-256 of the file.
    unused : tuple of str
        Keys or columns that play no role.
    table : Table or None
        The whole table, where the file is one.
    alone : tuple of str
        What names the event whose score a single column holds: the user, or else the column.
    is_named : bool
        Whether it names one of the labels.
    """

    path: str
    kind: str
    parts: Mapping[str, Rows]
    classes: NDArray[Any]
    class_names: Sequence[str]
    digest: str = ""
    unused: tuple[str, ...] = ()
    table: Any = None
    alone: tuple[str, ...] = ()
    is_named: bool = False

    @property
    def fit(self) -> Rows:
        """The rows to fit on: the validation part, or the only or first one."""
        return self.parts[FIT] if FIT in self.parts else next(iter(self.parts.values()))

    @property
    def test(self) -> Rows | None:
        """The rows to judge on, where the file has a split."""
        return self.parts[TEST] if TEST in self.parts and self.parts[TEST] is not self.fit else None

    @property
    def judged(self) -> Rows:
        """The test part where there is one, else the only or first."""
        return self.test or self.fit

    def labels(self, rows: Rows) -> NDArray[Any]:
        """Return the labels of some of its rows, or raise where the file has none."""
        if rows.labels is None:
            raise InvalidInput(
                f"{self.path} has no labels",
                seen=f"scores in {(rows.keys or {}).get('scores', 'the file')}",
                allowed="a key or column named labels, label or y",
                hint="name the one that holds them with --labels; for .npy it is another file",
            )
        return rows.labels

    def named(self, scores: NDArray[Any]) -> Any:
        """Return scores of this file with the names of its classes, so that a map fitted on them remembers these.

        The names decide; the only column of an event is named by the class that it is the score of.
        """
        if scores.ndim == 1 and self.alone:
            return Named(scores.reshape(-1, 1), self.alone)
        if scores.ndim == 1 or scores.shape[1] != len(self.class_names) or says_nothing(self.class_names):
            return scores
        return Named(scores, tuple(self.class_names))

    @property
    def event(self) -> str | None:
        """The label whose probability the scores hold, where it is one of two that are not 0 and 1; else None."""
        single = self.kind != "embeddings" and self.fit.scores.ndim == 1 and self.fit.labels is not None
        return str(self.classes[1]) if single and len(self.classes) == 2 and not self.plain_classes else None

    @property
    def has_labels_by_position(self) -> bool:
        """Whether labels are the numbers of columns that have names."""
        return self.plain_classes and not says_nothing(self.class_names)

    def need_scores(self, what: str) -> None:
        """Raise where the file has embeddings only."""
        if self.kind == "embeddings":
            raise InvalidInput(
                f"{what} needs scores, and {self.path} has embeddings only",
                allowed="a key or column named logits, probs or scores",
                hint="maps on embeddings, such as kcal, can be fitted, applied and measured without",
            )

    @property
    def plain_classes(self) -> bool:
        """Whether the labels are the positions 0 … K-1."""
        return self.classes.dtype.kind in "iu" and bool((self.classes == np.arange(len(self.classes))).all())
