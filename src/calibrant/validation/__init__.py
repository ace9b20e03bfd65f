"""The one place where user input is checked and becomes arrays."""

from .arrays import (
    BFLOAT16_ROUNDING,
    SIMPLEX_TOLERANCE,
    as_array,
    as_matrix,
    as_numbers,
    as_weights,
    column_names,
    is_one_score,
    shape_of,
    simplex_tolerance,
)
from .columns import column_order, order_alike, order_of, ordered_like, says_nothing
from .event import class_named, is_first_of_two
from .labels import as_groups, as_labels, known_classes, labels_in_order, plain_labels, refuse_missing
from .one_score import ScoreColumn, as_score_column
from .probabilities import Probabilities, as_probabilities, as_probabilities_of, label_hits, refuse_swapped
from .saturation import floored
from .scores import Scores, as_embeddings, as_scores, as_second, of_sensible_size
