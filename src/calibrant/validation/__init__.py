"""The one place where user input is checked and becomes arrays."""

from .arrays import (
    BFLOAT16_ROUNDING,
    SIMPLEX_TOLERANCE,
    as_array,
    as_matrix,
    as_weights,
    column_names,
    simplex_tolerance,
)
from .columns import column_order, ordered_like, says_nothing
from .labels import as_groups, as_labels
from .one_score import ScoreColumn, as_score_column
from .probabilities import Probabilities, as_probabilities, label_hits, refuse_swapped
from .saturation import floored
from .scores import Scores, as_embeddings, as_scores

__all__ = [
    "BFLOAT16_ROUNDING",
    "SIMPLEX_TOLERANCE",
    "Probabilities",
    "ScoreColumn",
    "Scores",
    "as_array",
    "as_embeddings",
    "as_groups",
    "as_labels",
    "as_matrix",
    "as_probabilities",
    "as_score_column",
    "as_scores",
    "as_weights",
    "column_names",
    "column_order",
    "floored",
    "label_hits",
    "ordered_like",
    "refuse_swapped",
    "says_nothing",
    "simplex_tolerance",
]
