"""One map after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from ..calibrator import Calibrator
from ..errors import InvalidInput
from ..fits.report import FitReport
from ..parameters import OneOf
from ..passes import Data
from ..traits import Traits, weakest
from .composition import Composition

if TYPE_CHECKING:
    from .one_vs_rest import OneVsRest

__all__ = ["Chain"]


class Chain(Composition):
    """Fits each map on the output of the one before (the *composition* of Mix-n-Match, §3.3).

    Parameters
    ----------
    parts : sequence of Calibrator
        The first acts on the scores, each next on the answer of the one before it. They are cloned, not changed.
    inputs : {"logits", "probabilities", "embeddings"}
        What the first part gets; what the parts say of their own plays no role. "embeddings" where the first part needs
        these, as `calibrant.make` sets it; scores otherwise.
    classes
        See `Calibrator`.

    Attributes
    ----------
    parts_ : list of Calibrator
        The fitted maps.
    """

    _identifier = "chain"
    _constraints: ClassVar[Mapping[str, Any]] = {"inputs": OneOf("logits", "probabilities", "embeddings")}

    def __init__(
        self, parts: Sequence[Calibrator], *, inputs: str = "logits", classes: Any = None, saturated: str = "small"
    ) -> None:
        self.parts = parts
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    @property
    def traits(self) -> Traits:
        """The last part's, except that it preserves no more than the weakest part does."""
        last = self.parts[-1].traits
        promise = weakest([part.traits.preserves for part in self.parts])
        growth = " + ".join(part.traits.parameters for part in self.parts)
        return Traits(last.shape, promise, last.calibrates, growth, self.parts[0].traits.needs)

    def _fit(self, data: Data) -> FitReport:
        self.parts_ = [part.unfitted() for part in self.parts]
        reports: list[FitReport] = []
        for part in self.parts_:
            reports.append(part.fit_data(data))
            data = data.mapped(part)
        first, last = reports[0], reports[-1]
        return FitReport(
            sum(r.iterations for r in reports),
            all(r.converged for r in reports),
            last.loss,
            first.loss_before if first.loss == last.loss else last.loss_before,
            last.loss_after,
            caveat=next((r.caveat for r in reports if r.caveat), ""),
            at_bound=tuple(f"parts_[{i}].{name}" for i, r in enumerate(reports) for name in r.at_bound),
            messages=tuple(m for r in reports for m in r.messages),
            details={"parts": reports},
        )

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        for part in self.parts_[:-1]:
            logits = part.link_logits(logits)
        return self.parts_[-1]._map(logits)

    def _map_logits(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        for part in self.parts_:
            logits = part.link_logits(logits)
        return logits

    @available_if(lambda chain: hasattr(chain.parts[-1], "predict_marginals"))
    def predict_marginals(self, scores: Any) -> NDArray[np.floating]:
        """Return the marginals of the last part, where it has any (a one-versus-rest lift)."""
        logits = self._scores_to_map(scores).logits
        for part in self.parts_[:-1]:
            logits = part.link_logits(logits)
        return cast("OneVsRest", self.parts_[-1])._marginals(logits)

    def _check_parts(self) -> None:
        first = self.parts[0]
        if self.inputs == "embeddings" and first.traits.needs == "scores":
            raise InvalidInput(
                f'Chain: inputs="embeddings", but parts[0] ({type(first).__name__}) takes scores',
                allowed='"logits" or "probabilities"',
            )
        for i, part in enumerate(self.parts[1:], start=1):
            if part.traits.needs != "scores":
                raise InvalidInput(
                    f"Chain: parts[{i}] ({type(part).__name__}) needs {part.traits.needs}, but gets the "
                    f"probabilities of parts[{i - 1}] ({type(self.parts[i - 1]).__name__})",
                    hint="put it first",
                )
