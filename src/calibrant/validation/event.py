"""The name of one column of scores: which of two classes it is the score of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import InvalidInput
from .arrays import SeriesName
from .columns import says_nothing

# What may stand around the name of the class: p_sick, P(sick), .pred_sick, sick_prob. Other words may mean anything
# ("p_not_sick", "risk_ward_a"), and a name that holds such names no class.
_WORDS = (
    "p|pr|prob|probs|proba|probability|probabilities|score|scores|logit|logits|log_odds|confidence|risk|"
    "pred|predicted|prediction|calibrated|y_prob|y_proba|y_score|y_pred|y_hat|y|class|of"
)
_BETWEEN = r"[\s_.:=|(\[-]"


def class_named(columns: Sequence[Any] | None, classes: Iterable[Any]) -> int | None:
    """Return the place of the class whose score the name of the only column says it is; None where it says nothing.

    Upper and lower case are the same where that is certain, and a longer name goes before one that it ends in.

    Examples
    --------
    >>> class_named(["p_sick"], ["sick", "well"]), class_named(["P(Well)"], ["sick", "well"])
    (0, 1)
    >>> class_named(["risk"], ["sick", "well"]), class_named(["p_not_sick"], ["sick", "well"])
    (None, None)
    >>> class_named(["p_-1"], [-1, 1]), class_named(["prob_0"], [0, 1])
    (0, 0)
    """
    if columns is None or len(columns) != 1 or says_nothing(columns):
        return None
    name, words = str(columns[0]), [str(c) for c in classes]
    for flags in (0, re.IGNORECASE):
        found = [place for place, word in enumerate(words) if word and _holds(name, word, flags)]
        if found:
            longest = max(len(words[place]) for place in found)
            found = [place for place in found if len(words[place]) == longest]
            return found[0] if len(found) == 1 else None
    return None


def _holds(name: str, word: str, flags: int) -> bool:
    """Tell whether a name is this word, or has around it words for scores alone."""
    if re.fullmatch(re.escape(word), name, flags):
        return True
    spelt = re.sub(r"(?:\\?[\s_.-])+", r"[\\s_.-]+", re.escape(word)) if word[:1].isalnum() else re.escape(word)
    inside = rf"(?:{'' if flags else '(?-i:'}{spelt}{'' if flags else ')'})"
    before = rf"{_BETWEEN}?(?:(?:{_WORDS}){_BETWEEN}+)+{inside}[)\]]?"
    behind = rf"{inside}(?:{_BETWEEN}+(?:{_WORDS}))+"
    numbered = rf"(?:{_WORDS}){inside}" if word.isdigit() else r"(?!)"
    return any(re.fullmatch(pattern, name, re.IGNORECASE) for pattern in (before, behind, numbered))


def is_first_of_two(columns: Sequence[Any] | None, classes: Any, name: str = "scores") -> bool:
    """Tell whether the only column has the score of the first of two classes, by its name; None are not known.

    Raises
    ------
    InvalidInput
        Where that is the name of a Series, which says what it was made of, and not what it is.
    """
    if columns is None or classes is None or len(columns) != 1 or len(classes) != 2:
        return False
    if class_named(columns, classes) != 0:
        return False
    if isinstance(columns[0], SeriesName):
        first, second = (repr(c.item() if hasattr(c, "item") else c) for c in classes)
        raise InvalidInput(
            f"{name} is a Series named like the score of {first}, and one score a row is that of {second}",
            seen=f"the name {str(columns[0])!r}, which arithmetic keeps: 1 - p is still called so",
            hint=f"of {first}: pass the frame of this column, df[[{str(columns[0])!r}]]; of {second}: pass .to_numpy()",
        )
    return True
