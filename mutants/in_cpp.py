"""Changes to C++: on the text of a line, where spaces tell operators from pointers, templates and signs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from .change import Change

_SWAPS = [
    ("operator", r" \+ ", " - "),
    ("operator", r" - ", " + "),
    ("operator", r" \* ", " / "),
    ("operator", r" / ", " * "),
    ("operator", r" \+= ", " -= "),
    ("operator", r" -= ", " += "),
    ("comparison", r" < ", " <= "),
    ("comparison", r" <= ", " < "),
    ("comparison", r" > ", " >= "),
    ("comparison", r" >= ", " > "),
    ("comparison", r" == ", " != "),
    ("comparison", r" != ", " == "),
    ("comparison", r"\bstd::max\b", "std::min"),
    ("comparison", r"\bstd::min\b", "std::max"),
    ("logic", r" && ", " || "),
    ("logic", r" \|\| ", " && "),
    ("sign", r"(?<=[(=,?:] )-(?=\w)", ""),
    ("sign", r"(?<=[(\[])-(?=\w)", ""),
    ("dropped term", r" [+-] \w[\w.]*(\[[^\]]*\])?(?=[;,)\]])", ""),
    ("dropped factor", r" \* \w[\w.]*(\[[^\]]*\])?(?=[;,)\]])", ""),
    ("ignored weights", r"\b(task\.)?weights \? (task\.)?weights\[[^\]]*\] : 1\.0", "1.0"),
    ("ignored weights", r"\bweight\[?\w*\]? \* ", ""),
]
_NUMBER = re.compile(r"(?<![\w.\"])(\d+\.\d*(?:e-?\d+)?|\d+e-?\d+|\d+)(?![\w.])")
_SKIPPED = re.compile(
    r"^\s*(//|#|template|using|static_assert|namespace|extern|throw|if .* throw nb::)|CALIBRANT_|\"_a\b"
)


def cpp_changes(path: str, source: str) -> list[Change]:
    """Return every change of a file."""
    found: list[Change] = []
    twins: Counter[tuple[str, str, str]] = Counter()
    for number, text in _lines(source):
        for kind, after in _edits(text):
            texts = (kind, text.strip(), after.strip())
            found.append(Change(path, number, *texts, len(found), twins[texts]))
            twins[texts] += 1
    return found


def changed_source(source: str, change: Change) -> str:
    """Return the file with the change."""
    lines = source.splitlines(keepends=True)
    assert lines[change.line - 1].strip().startswith(change.before)
    lines[change.line - 1] = lines[change.line - 1].replace(change.before, change.after)
    return "".join(lines)


def _lines(source: str) -> Iterator[tuple[int, str]]:
    """Yield number and text, the line without its comment, for lines that compute something."""
    for number, line in enumerate(source.splitlines(), 1):
        text = line.split("//")[0].rstrip()
        if text and not _SKIPPED.search(line):
            yield number, text


def _edits(text: str) -> Iterator[tuple[str, str]]:
    for kind, pattern, new in _SWAPS:
        for match in re.finditer(pattern, text):
            yield kind, text[: match.start()] + new + text[match.end() :]
    for match in _NUMBER.finditer(text):
        value = match.group()
        whole = int(value) if value.isdigit() else None
        other = repr(float(value) * 1.5 or 1.0) if whole is None else str(whole + 1 if whole <= 16 else whole * 2)
        yield "constant", text[: match.start()] + other + text[match.end() :]
