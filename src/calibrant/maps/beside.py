"""A map on embeddings beside the classifier whose embeddings they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..declared import attribute, declared
from ..errors import InvalidInput, caution
from ..fits.judge import label_losses
from ..invariants import Fitted, Optional
from ..parameters import OneOf
from ..types import Floats, Self
from ..validation import as_labels, ordered_like
from .projected import Projected
from .scaling.temperature import TemperatureScaling


@declared
class Beside(Projected):
    """Compares itself with the classifier it replaces, where that one's scores are given, and falls back on it."""

    classifier_: TemperatureScaling | None = attribute(Optional(Fitted()), default=None)
    answers_by_: str = attribute(Optional(OneOf("kernel", "classifier")), default="kernel")

    def fit(
        self,
        scores: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        classifier_scores: Any = None,
        classifier_inputs: str = "logits",
    ) -> Self:
        """Fit the map on embeddings of rows that the classifier was not trained on.

        Parameters
        ----------
        scores : array-like of shape (n, d)
            The embeddings (or scores, where ``inputs`` names these).
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        classifier_scores : array-like of shape (n, K), optional
            What the classifier itself says of these rows. They are given one temperature, and if their log-loss is
            then lower than that of this map on rows it has not seen, a warning says so, ``answers_by_`` becomes
            "classifier", and `predict_proba` answers with them wherever it is given them too.
        classifier_inputs : {"logits", "probabilities"}
            What they are.
        """
        self.classifier_, self.answers_by_ = None, "kernel"
        if classifier_scores is not None and self.inputs != "embeddings":
            raise InvalidInput(
                "classifier_scores are for maps on embeddings", seen=f"inputs={self.inputs!r}", allowed="None"
            )
        super().fit(scores, y, sample_weight)
        if classifier_scores is not None:
            self._compare_with(classifier_scores, classifier_inputs, y, sample_weight)
        return self

    def predict_proba(self, scores: Any, classifier_scores: Any = None) -> Floats:
        """Return probabilities of shape (n, K): this map's, or where the classifier is better and given, its own."""
        better = self._better(classifier_scores)
        return super().predict_proba(scores) if better is None else better.predict_proba(classifier_scores)

    def predict(self, scores: Any, classifier_scores: Any = None) -> NDArray[Any]:
        """Return the most probable class of each row."""
        better = self._better(classifier_scores)
        return super().predict(scores) if better is None else better.predict(classifier_scores)

    def _better(self, classifier_scores: Any) -> TemperatureScaling | None:
        """Return the map of the classifier's scores, where these are given and better."""
        if classifier_scores is None:
            return None
        check_is_fitted(self, "fit_report_")
        if self.classifier_ is None:
            raise InvalidInput(
                "classifier_scores were not given to fit, so there is nothing to compare with",
                hint="give them to fit too",
            )
        return self.classifier_ if self.answers_by_ == "classifier" else None

    def _compare_with(self, scores: Any, inputs: str, y: Any, weights: Any) -> None:
        scores = ordered_like(scores, None, self.classes_)  # which need not be in the order of the classifier's columns
        known = TemperatureScaling(inputs=inputs, classes=self.classes_).fit(scores, y, sample_weight=weights)
        raw, best = known.fit_report_.loss_before, known.fit_report_.held_out_after
        report = self.fit_report_
        own = report.held_out_after
        self.classifier_ = known
        answers = known.predict_proba(scores)
        labels, _ = as_labels(y, len(self.classes_), len(answers), self.classes_)
        spread = float(np.std(label_losses(answers, labels)))
        self.fit_report_ = replace(
            report,
            loss_before=raw,
            held_out_before=raw,
            held_out_error=float(np.hypot(report.details["error"], spread / np.sqrt(self.n_samples_))),
            details={**report.details, "before": "classifier", "classifier": {"nll": raw, "nll_tempered": best}},
        )
        if own is None or best is None or own <= best:
            return
        self.answers_by_ = "classifier"
        caution(
            f"{self.called} does not replace the classifier: its held-out nll is {own:.4f}, that of the classifier's "
            f"scores with one temperature {best:.4f}; predict_proba(embeddings, classifier_scores=…) answers with these"
        )
