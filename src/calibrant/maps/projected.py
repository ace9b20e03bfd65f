"""What a map on projected rows needs: how the projection is learnt, what to do with few rows, how rows go through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from ..calibrator import Calibrator
from ..errors import InvalidInput
from ..formulas import Term
from ..formulas.functions import floored as floored_formula
from ..invariants import Anything, Numbers, Optional, Text, Values
from ..passes import Block
from ..progress import progress_bar
from ..types import Array, Floats, Self
from ..validation import as_labels, as_weights
from ..validation.saturation import count_zeros, floored, read_zeros, zero_level
from .projection import FEWEST, LEARNT, TRAINED, Projection, as_points, learn, merged

Learn = Callable[[Block], tuple[dict[str, Array] | None, list[float]]]
FOLDS = 3  # of a projection that is learnt on the calibration rows


class Projected(Calibrator):
    """A map on rows that go through a projection Π, learnt on training rows or with the map itself."""

    _state: ClassVar[Mapping[str, Any]] = {
        "projection_": Optional(Anything()),
        "projection_losses_": Optional(Numbers()),
        "projection_source_": Optional(Text()),
        "projection_kind_": Optional(Text()),
    }

    projection: Any
    dim: int | None
    random_state: int | None
    projection_: dict[str, Array] | None
    projection_losses_: list[float]
    projection_source_: str
    projection_kind_: str

    def fit_projection(self, embeddings: Any, y: Any, sample_weight: Any = None, progress: Any = None) -> Self:
        """Learn Π on training rows.

        ``progress(step, steps, loss)`` is called while it trains; without one, a training of more than two seconds
        shows a bar with the loss and the time left on a terminal.
        """
        self._check_parameters()
        valid = self._read(embeddings, self.classes)
        k = None if self.inputs == "embeddings" else valid.logits.shape[1]
        labels, classes = as_labels(y, k, len(valid.logits), self.classes, valid.columns)
        weights = as_weights(sample_weight, len(labels))
        logits = valid.logits
        if self.inputs != "embeddings" and self.saturated != "exact":
            logits = read_zeros(logits, zero_level(count_zeros(logits, labels, weights), len(classes)))
        given, _ = merged(weighty(Block(self._features(logits), labels, weights, len(classes))))
        self.projection_kind_, self.projection_source_ = self._kind(given.n), "training rows"
        self.projection_, self.projection_losses_ = self._learn(given, progress)
        return self

    def _learn(self, sample: Block, progress: Any = None) -> tuple[dict[str, Array] | None, list[float]]:
        if not self._learns:
            return None, []
        size = min(sample.logits.shape[1], self.dim or (128 if sample.n_classes >= 1000 else 32))
        with progress_bar("learning KCal's projection") as advance:
            tell = progress or (lambda step, steps, loss: advance(step, steps, f"(loss {loss:.4f})"))
            found, losses = learn(self.projection_kind_, sample, size, self.random_state or 0, tell)
        return dict(vars(found)), losses

    def _discriminants(self, sample: Block) -> tuple[dict[str, Array] | None, list[float]]:
        """Learn as many discriminant directions as there are between the classes, or ``dim`` of them."""
        between = max(1, len(np.unique(sample.labels)) - 1)
        found, losses = learn("lda", sample, min(sample.logits.shape[1], self.dim or between), 0, None)
        return dict(vars(found)), losses

    @property
    def _learns(self) -> bool:
        return isinstance(self.projection, str) and self.projection in LEARNT

    def _kind(self, rows: int) -> str:
        """How Π is learnt: too few distinct rows to train on leave the discriminant directions."""
        if callable(self.projection):
            return "callable"
        return "lda" if self.projection in TRAINED and rows < FEWEST else self.projection

    def _check_dimensions(self, rows: Floats) -> None:
        """Refuse rows of other dimensions than those that the projection was learnt on."""
        found = (
            getattr(self, "projection_", None) if getattr(self, "projection_source_", "") == "training rows" else None
        )
        if found is not None and len(found["mean"]) != rows.shape[1]:
            learnt = f"{len(found['mean'])} columns, as in fit_projection"
            raise InvalidInput("X has other columns than the projection", seen=f"shape {rows.shape}", allowed=learnt)

    def _untrained(self) -> tuple[str, ...]:
        """What to say where a training was asked for and there were too few rows."""
        if self.projection_kind_ in (self.projection, "callable"):
            return ()
        fewest = FEWEST if self.projection_source_ == "training rows" else FEWEST * FOLDS // (FOLDS - 1)
        rows = f"fewer than {fewest} distinct {self.projection_source_}"
        return (f'{rows} are too few to train a "{self.projection}" projection; discriminant directions serve instead',)

    def _check_state(self) -> None:
        """Check the parts of the projection against one another, and the points, if any, against them."""
        found = getattr(self, "projection_", None)
        columns, width = self.n_features_in_, getattr(self, "points_", np.empty((0, 0))).shape[1]
        if found is None:
            if not callable(self.projection) and width not in (0, columns):
                raise InvalidInput("projection_ is missing: the points have other columns than the rows")
            return
        shapes = {"mean": ("D",), "scale": ("D",), "weight": ("d", "D"), "bias": ("d",), "mix": ("mixed", "d")}
        if not isinstance(found, dict) or set(found) != set(shapes):
            raise InvalidInput("projection_ is not usable: its parts are not those of a projection")
        sizes = {"D": columns, **({"d": width} if width else {})}
        for name, shape in shapes.items():
            low = 1e-150 if name == "scale" else -1e100
            problem = Values(*shape, low=low, high=1e100).wrong(found[name], sizes)
            if problem:
                raise InvalidInput(f"projection_ is not usable: of {name}, {problem}")
        if sizes["mixed"] not in (0, sizes["d"]):
            raise InvalidInput("projection_ is not usable: mix must have no rows or one for each dimension")

    def _features(self, rows: Floats) -> Floats:
        """What Π sees: embeddings as they are; scores without -inf, each row centred, in double precision.

        Scores lie many bandwidths apart, where single precision loses the digits that tell the nearest point.
        """
        if self.inputs == "embeddings":
            return rows
        finite = floored(rows.astype(np.float64))
        return finite - finite.mean(axis=1, keepdims=True)

    def _projected_formula(self, z: Term) -> Term:
        """What `_project` makes of `_features`, as a formula."""
        if callable(self.projection):
            raise InvalidInput(
                f"{self.called} cannot be exported: its projection is a function of yours",
                seen=repr(self.projection),
                hint='take projection="learned", "linear", "lda" or "pca", or put the function into your model',
            )
        if self.inputs != "embeddings":
            finite = floored_formula(z)
            z = finite - finite.row_mean()
        found = getattr(self, "projection_", None)
        return z if found is None else Projection(**found).formula(z)

    def _project(self, features: Floats) -> Floats:
        if callable(self.projection):
            return as_points(self.projection(features), features)
        found = getattr(self, "projection_", None)
        return features if found is None else Projection(**found)(features)


def weighty(sample: Block) -> Block:
    """The rows that have a weight."""
    rows = np.flatnonzero(sample.weight_array)
    return sample if len(rows) == sample.n else sample.take(rows)
