"""What the name of a key, a column or a file says: its role, and the part of a split it belongs to."""

from __future__ import annotations

# The first of each list is the name we use ourselves.
_ROLES: dict[str, tuple[str, ...]] = {
    "logits": ("logits", "logit"),
    "probabilities": ("probs", "probabilities", "probability", "proba", "prob", "confidence", "risk"),
    "scores": ("scores", "score"),
    "labels": ("labels", "label", "y_true", "targets", "target", "correct", "y"),
    "embeddings": ("embeddings", "embedding", "features"),
    "weights": ("weights", "sample_weight", "weight"),
    "groups": ("groups", "group"),
    "clusters": ("clusters", "cluster"),
    "classes": ("classes", "class_names"),
}
# What only begins the name of a column: p_ant, and calibrated_ant, which `apply` writes.
_PREFIXES = ("p", "calibrated")
SCORE_ROLES = ("logits", "probabilities", "scores")
FIT, TEST = "val", "test"
_PARTS = {
    FIT: {"val", "valid", "validation", "cal", "calib", "calibration", "dev"},
    TEST: {"test", "eval", "evaluation", "holdout"},
    "train": {"train", "training"},
}


def role_of(name: str) -> tuple[str, str] | None:
    """Return (role, part) of a key such as ``labels``, ``logits_val`` or ``test_probs``; None for other names.

    Examples
    --------
    >>> role_of("logits_val"), role_of("eval_y"), role_of("season")
    (('logits', 'val'), ('labels', 'test'), None)
    """
    lower = name.lower()
    for role, words in _ROLES.items():
        for word in words:
            if lower == word:
                return role, ""
            if lower.startswith(word + "_") and part_name(lower[len(word) + 1 :]) in _PARTS:
                return role, part_name(lower[len(word) + 1 :])
            if lower.endswith("_" + word):
                return role, part_name(name[: -len(word) - 1])
    return None


def part_name(text: str) -> str:
    """Return "val", "test" or "train" for the words that mean them, and any other name as it is."""
    return next((part for part, words in _PARTS.items() if text.lower() in words), text)


def score_prefix(column: str, roles: tuple[str, ...] = SCORE_ROLES) -> tuple[str, str] | None:
    """Return (prefix with its separator, role) of a column such as ``prob_cat`` or ``logits.3``; None for others."""
    lower = column.lower()
    for role in roles:
        for word in (*_ROLES[role], *(_PREFIXES if role == "probabilities" else ())):
            rest = lower[len(word) :]
            if lower.startswith(word) and len(rest) > 1 and rest[0] in "_.: -":
                return column[: len(word) + 1], role
            if lower.startswith(word) and rest.isdigit():
                return column[: len(word)], role
    return None
