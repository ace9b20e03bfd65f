"""What each figure means, in a sentence: of the most probable class, or of one event."""

from __future__ import annotations

__all__ = ["meanings_of"]

LOSSES = {
    "nll": "Logarithmic loss in nats: punishes confident errors most. Lower is better; it rewards truth and sharpness.",
    "brier": "Squared distance between the probabilities and what happened. Lower is better.",
}
ERRORS = {
    "ece_crossfit": "Root mean square gap between {said} and {seen}, with little bias: quote this one.",
    "ece": "Mean gap between {said} and {seen} over 15 bins: the number most papers print. Too high on few rows.",
    "ece_sweep": "Mean gap with as many bins as keep the curve rising: less biased.",
    "ece_debiased": "Root mean square gap over bins, with their bias subtracted.",
    "smece": "Mean gap, smoothed over {said} instead of binned.",
    "ks_error": "Largest gap between cumulated {said} and cumulated {seen}.",
    "mce": "Largest gap of any bin. Unstable where bins have few rows.",
}
CLASSES = {
    "accuracy": "How often the most probable class is right.",
    "cwece": "Mean gap over the classes, each against the rest.",
}
EVENT = {"event_rate": "How often the event happened. No map changes it."}


def meanings_of(is_event: bool) -> dict[str, str]:
    """Return a sentence for each figure of a measurement."""
    said, seen = ("probability", "frequency") if is_event else ("confidence", "accuracy")
    errors = {name: words.format(said=said, seen=seen) for name, words in ERRORS.items()}
    return {**LOSSES, **errors, **(EVENT if is_event else CLASSES)}
