"""One map after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.utils.metaestimators import available_if

from ..calibrator import Calibrator, Summand
from ..declared import attribute, declared, parameter
from ..errors import InvalidInput
from ..fits.report import FitReport
from ..formulas import Term
from ..invariants import Fitted
from ..parameters import OneOf
from ..passes import Data
from ..traits import Traits, most_of, weakest
from ..types import Floats
from .composition import Composition

if TYPE_CHECKING:
    from .one_vs_rest import OneVsRest


@declared
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
    parts: Sequence[Calibrator] = parameter()
    inputs: str = parameter(OneOf("logits", "probabilities", "embeddings"), default="logits", kw_only=True)
    parts_: list[Calibrator] = attribute(Fitted("links"))

    @property
    def traits(self) -> Traits:
        """The last part's, except that it preserves no more than the weakest part does."""
        last = self.parts[-1].traits
        promise = weakest([part.traits.preserves for part in self.parts])
        growth = " + ".join(part.traits.parameters for part in self.parts)
        sees = most_of([part.traits.sees for part in self.parts])
        return Traits(last.shape, promise, last.calibrates, growth, self.parts[0].traits.needs, sees)

    @property
    def _zeros_in_order(self) -> bool:
        return self.parts[0]._zeros_in_order

    def _fit(self, data: Data) -> FitReport:
        return self._fit_behind(Link.fit(self.parts[0], data))

    def fit_behind(self, link: Link) -> FitReport:
        """Fit on rows whose first link is fitted already, as chains do that begin alike."""
        self.classes_ = np.arange(link.data.n_classes)
        self.fit_report_ = self._fit_behind(link)
        return self.fit_report_

    def _fit_behind(self, link: Link) -> FitReport:
        self.parts_, reports = [link.part], [link.report]
        for part in self.parts[1:]:
            link = Link.fit(part, link.answered)
            self.parts_.append(link.part)
            reports.append(link.report)
        first, last = reports[0], reports[-1]
        known = [r.details["effective_parameters"] for r in reports if "effective_parameters" in r.details]
        counted = {"effective_parameters": float(sum(known))} if len(known) == len(reports) else {}
        return FitReport(
            sum(r.iterations for r in reports),
            all(r.converged for r in reports),
            last.loss,
            first.loss_before if first.loss == last.loss else last.loss_before,
            last.loss_after,
            caveat=next((r.caveat for r in reports if r.caveat), ""),
            at_bound=tuple(f"parts_[{i}].{name}" for i, r in enumerate(reports) for name in r.at_bound),
            messages=tuple(m for r in reports for m in r.messages),
            details={"parts": reports, **counted},
        )

    def _map(self, logits: Floats) -> Floats:
        return self.parts_[-1]._map(self._linked(self.parts_[:-1], logits))

    def _map_precisely(self, logits: Floats) -> Floats:
        return self.parts_[-1]._map_precisely(self._linked(self.parts_[:-1], logits))

    def map_behind(self, answer: Floats) -> Floats:
        """Return probabilities from the answer of the first link, as logits; for chains of two links or more."""
        return self.parts_[-1]._map(self._linked(self.parts_[1:-1], answer))

    def _summands(self) -> list[Summand]:
        links = tuple(self.parts_[:-1])
        return [term._replace(links=(*links, *term.links)) for term in self.parts_[-1]._summands()]

    def _map_logits(self, logits: Floats) -> Floats:
        return self._linked(self.parts_, logits)

    def _formula(self, z: Term) -> Term:
        return self.parts_[-1]._formula(self._linked_formula(self.parts_[:-1], z))

    def _logits_formula(self, z: Term) -> Term:
        return self._linked_formula(self.parts_, z)

    @staticmethod
    def _linked_formula(links: list[Calibrator], z: Term) -> Term:
        for link in links:
            z = link.link_formula(z)
        return z

    @staticmethod
    def _linked(links: list[Calibrator], logits: Floats) -> Floats:
        for link in links:
            logits = link.link_logits(logits)
        return logits

    @available_if(lambda chain: hasattr(chain.parts[-1], "predict_marginals"))
    def predict_marginals(self, scores: Any) -> Floats:
        """Return the marginals of the last part, where it has any (a one-versus-rest lift)."""
        logits = self._linked(self.parts_[:-1], self._scores_to_map(scores).logits)
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


@dataclass(frozen=True, eq=False)
class Link:
    """A fitted part of a chain, its report, and the rows that it was fitted on."""

    part: Calibrator
    report: FitReport
    data: Data

    @classmethod
    def fit(cls, part: Calibrator, data: Data) -> Link:
        """Fit a copy of a part."""
        copy = part.unfitted()
        return cls(copy, copy.fit_data(data), data)

    @cached_property
    def answered(self) -> Data:
        """The rows as the part answers them, lazily: one and the same for all chains that go on from here."""
        return self.data.mapped(self.part)
