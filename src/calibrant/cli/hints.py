"""What the library advises in Python, as the command line says it."""

from __future__ import annotations

import re

_SAID: list[tuple[str, str]] = [
    (r'inputs="probabilities"', "--kind probs"),
    (r'inputs="logits"', "--kind logits"),
    (
        r"pass classes=\[…\][^;]*",
        "name the columns by their classes, as in p_ant,p_bee, or give the names in a key classes, or name by --event "
        "the event of one column",
    ),
    (r"to_sql\(columns, .*\)", "--table scores --keep id"),
    (r"one-hot rows: pass y\.argmax\(axis=1\)", "of one-hot rows, write the number of the class"),
    (r"percentages must be divided by 100", "if these are percentages, pass --percent"),
    (r"\bor normalise the rows\b", "normalise the rows, or choose their columns with --scores"),
    (r"\ba smaller cv\b", "a smaller --cv"),
    (r"\b(scores|label|weight|groups?)=…", r"--\1 …"),
    (r'\bpart="(\w+)"', r"--part \1"),
    (r"\ba test set\b", "--test FILE"),
    (
        r"select or rename the columns, or pass an array without names.*",
        "rename the columns, or choose others with --scores",
    ),
    (r"pass arrays that fit in memory", "allow more by --memory, so that the file is read whole"),
    # Parameters of maps, whatever they are called.
    (r"""\b([a-z_]+)=["']?([A-Za-z0-9_.-]+)["']?""", r"--set \1=\2"),
]


def in_options(text: str) -> str:
    """Return advice with options where it names arguments.

    Examples
    --------
    >>> in_options('pass inputs="probabilities", or projection="lda"')
    'pass --kind probs, or --set projection=lda'
    """
    for pattern, words in _SAID:
        text = re.sub(rf"(?<!--set ){pattern}" if "\\1" in words else pattern, words, text)
    return text
