"""What each metric means, in a sentence."""

from __future__ import annotations

__all__ = ["MEANINGS"]

MEANINGS = {
    "accuracy": "How often the most probable class is right.",
    "nll": "Logarithmic loss in nats: punishes confident errors most. Lower is better; it rewards truth and sharpness.",
    "brier": "Squared distance between the probabilities and what happened. Lower is better.",
    "ece_crossfit": "Root mean square gap between confidence and accuracy, with little bias: quote this one.",
    "ece": "Mean gap between confidence and accuracy over 15 bins: the number most papers print. Too high on few rows.",
    "ece_sweep": "The same with as many bins as keep the curve rising: less biased.",
    "ece_debiased": "Root mean square gap, with the bias of its bins subtracted.",
    "smece": "Gap smoothed over confidence instead of binned.",
    "ks_error": "Largest gap between cumulated confidence and cumulated accuracy.",
    "mce": "Largest gap of any bin. Unstable where bins have few rows.",
    "cwece": "Mean gap over the classes, each against the rest.",
}
