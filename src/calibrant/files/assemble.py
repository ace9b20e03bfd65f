"""From named arrays to a checked `Dataset`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..validation import as_embeddings, as_labels, as_scores, as_weights, column_order, is_one_score, labels_in_order
from .dataset import Dataset, Rows
from .event import chosen_event, column_of_event, distinct_labels, labels_known, plain_labels, two_labels
from .pieces import Found, Names, Piece, listed
from .roles import FIT, SCORE_ROLES, TEST
from .rounding import from_percent, on_the_simplex


def assemble(path: str, found: Found, names: Names, digest: str) -> Dataset:
    """Group the pieces into parts, settle the kind and the classes, and check everything."""
    known = labels_known(distinct_labels(found.pieces), names.known)
    own = chosen_event(found.pieces, names, known)
    two = None if own is None else two_labels(found.pieces, own, known)
    event = own if two is None else None  # of more labels the event is one against the others
    pieces = [plain_labels(piece, event) if piece.role == "labels" else piece for piece in found.pieces]
    lines = None if found.table is None else found.table.lines
    parts = _parts(path, pieces, names, found.keys)
    kinds = {part: _kind(path, group["scores"], names) for part, group in parts.items()}
    if len(set(kinds.values())) > 1:
        raise InvalidInput(f"{path} holds logits in one part and probabilities in another", seen=str(kinds))
    kind = next(iter(kinds.values()))
    if names.several:
        return _several(path, parts, kind, names, Dataset(path, kind, {}, np.arange(0), [], digest, (), found.table))
    for group in parts.values():
        _refuse_other_width(path, group["scores"], names)
        group["scores"] = _one_a_row(group["scores"])
        with _naming_lines(lines, [group["scores"]]):
            group["scores"] = unrounded(path, group["scores"], kind, names)
            _check_arrays(path, group, kind)
    with _naming_lines(lines, [group["labels"] for group in parts.values() if "labels" in group]):
        classes, class_names = _classes(path, pieces, parts, two, known)
    rows = {part: _rows(group) for part, group in parts.items()}
    used = {name for group in parts.values() for piece in group.values() for name in (piece.key, *piece.sources)}
    unused = tuple(key for key in found.keys if key not in used)
    told = () if (told := column_of_event(pieces, names)) is None else (told,)
    return Dataset(path, kind, rows, classes, class_names, digest, unused, found.table, told, bool(own or known))


def _one_a_row(scores: Piece) -> Piece:
    """Return a single column of scores as one score a row: that of an event, in whatever file."""
    single = scores.role != "embeddings" and scores.values.ndim == 2 and is_one_score(scores.values.shape)
    return replace(scores, values=scores.values[:, 0]) if single else scores


def _refuse_other_width(path: str, scores: Piece, names: Names) -> None:
    """Raise where scores have another number of columns than a map, before a number is read: no row can be right."""
    known = [str(label) for label in names.known]
    width = scores.values.shape[1] if scores.values.ndim == 2 else 1
    if not known or scores.role == "embeddings" or width == len(known) or (width == 1 and len(known) == 2):
        return
    if scores.columns is None:
        raise InvalidInput(
            f"{names.whose} and the data have different numbers of classes",
            seen=f"{len(known)} in {names.whose}, {width} in {path}",
        )
    with other_classes(path, names.whose):
        column_order(scores.columns, known, None)
    raise InvalidInput(
        f"{path} has other columns than {names.whose}", seen=listed(scores.columns), allowed=listed(known)
    )


@contextmanager
def other_classes(path: str, whose: str) -> Iterator[None]:
    """Let an error about names of columns say which file it is about, and what to do there."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(
            f"{path} names other classes than {whose}",
            seen=error.seen,
            allowed=error.allowed,
            hint="rename the columns, or choose others with --scores",
        ) from error


def _several(path: str, parts: dict[str, Group], kind: str, names: Names, empty: Dataset) -> Dataset:
    """Return rows with several labels: the columns of labels in the order of those of the scores."""
    rows, shown = {}, [""]
    for part, group in parts.items():
        scores, labels = group["scores"], group.get("labels")
        if labels is None or labels.values.ndim != 2 or labels.values.shape != scores.values.shape:
            raise InvalidInput(
                f"{path}: several labels a row need a column of outcomes for each of the scores",
                seen=f"scores {scores.values.shape}, labels {'none' if labels is None else labels.values.shape}",
                hint="name them by --scores and --labels: a prefix, a pattern such as 'y_*', or a list a,b,c",
            )
        percent = names.percent or scores.percent
        group["scores"] = replace(scores, values=from_percent(scores.values)) if percent else scores
        shown = list(scores.columns or labels.columns or map(str, range(labels.values.shape[1])))
        if labels.columns is not None and set(labels.columns) == set(shown):
            order = [labels.columns.index(name) for name in shown]
            group["labels"] = replace(labels, values=labels.values[:, order])
        rows[part] = _rows(group)
    return replace(empty, parts=rows, classes=np.asarray(shown), class_names=shown)


@contextmanager
def _naming_lines(lines: Sequence[int] | None, pieces: Sequence[Piece]) -> Iterator[None]:
    """Let errors about rows of these pieces, one behind the other, name the line in the file instead."""
    try:
        yield
    except InvalidInput as error:
        if lines is None:
            raise
        own = [range(len(lines)) if piece.places is None else piece.places for piece in pieces]
        of_row = [lines[int(place)] for places in own for place in places]

        def named(text: str) -> str:
            return re.sub(r"\brow (\d+)", lambda found: f"line {of_row[int(found[1])]}", text)

        kind = type(error)
        raise kind(named(error.what), seen=named(error.seen), allowed=error.allowed, hint=error.hint) from None


def unrounded(path: str, scores: Piece, kind: str, names: Names) -> Piece:
    """Return percentages as fractions, and rows that a coarse type has rounded so that they sum to one again."""
    percent = names.percent or scores.percent
    if percent and kind != "probabilities":
        raise InvalidInput(f"{path}: {scores.key} holds {kind}, which are no percentages", hint="leave --percent away")
    if kind != "probabilities" or scores.values.dtype.kind not in "fiub":
        return scores
    if percent:
        return replace(scores, values=from_percent(scores.values))
    return replace(scores, values=on_the_simplex(scores.values, scores.rounding)) if scores.rounding else scores


Group = dict[str, Piece]


def _parts(path: str, pieces: Sequence[Piece], names: Names, keys: Sequence[str]) -> dict[str, Group]:
    """The pieces of each part by role; a part has scores, the rest is optional."""
    groups: dict[str, Group] = {}
    for part in dict.fromkeys(piece.part for piece in pieces):
        own = [piece for piece in pieces if piece.part == part]
        scores = chosen_scores(path, [p for p in own if p.role in SCORE_ROLES], names)
        groups[part] = {} if scores is None else {"scores": scores}
        for role in ("labels", "embeddings", "weights", "groups", "clusters"):
            candidates = [p for p in own if p.role == role]
            if len(candidates) > 1:
                raise InvalidInput(
                    f"{path} has several {role}", seen=listed([p.key for p in candidates]), hint=f"choose by --{role}"
                )
            if candidates:
                groups[part][role] = candidates[0]
    found = {part: group for part, group in groups.items() if "scores" in group}
    if not found:  # embeddings alone are enough for some maps
        found = {part: {"scores": g["embeddings"], **g} for part, g in groups.items() if "embeddings" in g}
    if not found:
        raise InvalidInput(
            f"{path} has no scores",
            seen=listed(keys),
            allowed="a key or column named logits, probs or scores",
            hint=f"{_where_scores_are(pieces, names, keys)}, and say --kind logits or --kind probs",
        )
    return _selected(path, found, names.part, names.every_part)


def _where_scores_are(pieces: Sequence[Piece], names: Names, keys: Sequence[str]) -> str:
    """Return a hint where scores may be: columns that are called like the map's classes or like the labels."""
    wanted = [[str(label) for label in labels] for labels in (names.known, distinct_labels(pieces))]
    called = next((some for some in wanted if len(some) > 1 and set(some) <= set(keys)), [])
    if not called or any("," in name for name in called):
        return "name the one that holds them with --scores"
    return f"columns are called like the classes: if they hold them, pass --scores {shlex.quote(','.join(called))}"


def _selected(path: str, groups: dict[str, Group], part: str | None, every: bool) -> dict[str, Group]:
    if part is not None:
        if part not in groups:
            raise InvalidInput(f"{path} has no part {part!r}", seen=listed(list(groups)), hint="it was named by --part")
        return {part: groups[part]}
    if {FIT, TEST} & set(groups) and not every:  # a training part beside them is not for calibration
        return {name: group for name, group in groups.items() if name in (FIT, TEST, "")}
    return groups


def chosen_scores(path: str, candidates: list[Piece], names: Names) -> Piece | None:
    """Return the one of several pieces that holds the scores."""
    if names.kind is not None and len(candidates) > 1:
        candidates = [p for p in candidates if p.role == names.kind] or candidates
    if len(candidates) > 1:
        raise InvalidInput(
            f"{path} has several scores",
            seen=listed([p.key for p in candidates]),
            hint="choose with --scores, or with --kind logits or --kind probs",
        )
    return candidates[0] if candidates else None


def _kind(path: str, scores: Piece, names: Names) -> str:
    said = scores.role if scores.role != "scores" else None
    if names.kind is not None and said is not None and names.kind != said:
        raise InvalidInput(
            f"{path}: {scores.key} says {said}, but --kind says {names.kind}",
            hint="leave --kind away, or rename the key",
        )
    kind = (
        names.kind or said or ("probabilities" if names.percent or scores.percent else None)
    )  # of what, per cent says
    if kind is None:
        raise InvalidInput(
            f"{path}: whether {scores.key} holds logits or probabilities is not said by its name, and is never guessed",
            hint="pass --kind logits or --kind probs",
        )
    return kind


def _check_arrays(path: str, group: Group, kind: str) -> None:
    """Run every check that a fit would run, with the names of the file in the message."""
    scores = group["scores"]
    if scores.values.dtype.kind not in "fiub":
        raise InvalidInput(f"{path}: {scores.key} must hold numbers", seen=f"values of type {scores.values.dtype}")
    if kind == "embeddings":
        as_embeddings(scores.values, name=f"{path}: {scores.key}")
    else:
        as_scores(scores.values, kind, name=f"{path}: {scores.key}")
    for role in ("embeddings", "labels", "weights", "groups", "clusters"):
        if role in group and len(np.atleast_1d(group[role].values)) != len(scores.values):
            raise InvalidInput(
                f"{path}: {scores.key} and {group[role].key} have inconsistent numbers of rows",
                seen=f"{len(scores.values)} and {len(np.atleast_1d(group[role].values))}",
            )
    for role in ("embeddings", "weights"):
        if role in group:
            _check_finite(f"{path}: {group[role].key}", group[role].values)
    if "weights" in group:
        as_weights(group["weights"].values, len(scores.values), name=f"{path}: {group['weights'].key}")


def _check_finite(what: str, values: NDArray[Any]) -> None:
    if values.dtype.kind not in "fiub":
        raise InvalidInput(f"{what} must hold numbers", seen=f"values of type {values.dtype}")
    bad = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
    if bad.any():
        raise InvalidInput(f"{what} contains NaN or infinity", seen=f"row {int(bad.argmax())}")


def _classes(
    path: str, pieces: Sequence[Piece], parts: dict[str, Group], two: list[Any] | None, known: Sequence[Any]
) -> tuple[NDArray[Any], list[str]]:
    """The label of each column, the same for all parts, and the names to show.

    ``two``: the event comes second; ``known`` are the classes of a map, which decide where nothing in the file does.
    """
    first = next(iter(parts.values()))["scores"]
    shape = first.values.shape
    embedded = first.role == "embeddings"
    k = None if embedded else 2 if is_one_score(shape) else shape[1]
    for group in parts.values():
        other = group["scores"].values.shape
        if other[1:] != shape[1:]:
            raise InvalidInput(
                f"{path}: the parts have different numbers of {'columns' if embedded else 'classes'}",
                seen=f"{first.key} {shape}, {group['scores'].key} {other}",
            )
    named = two or _class_names(path, pieces, first, k) or (None if embedded else list(known) or None)
    labelled = [group["labels"] for group in parts.values() if "labels" in group]
    if not labelled:
        return (np.arange(k or 0) if named is None else np.asarray(named)), [str(c) for c in (named or range(k or 0))]
    values = np.concatenate([np.atleast_1d(piece.values) for piece in labelled])
    name = f"{path}: {labelled[0].key}"
    # Labels that are of the kind of the names are names; integers beside names in words are positions.
    by_name = named is not None and isinstance(named[0], str) == (values.dtype.kind in "OU")
    positions = list(range(len(named))) if embedded and named is not None else None
    columns = None if named is None or embedded else tuple(map(str, named))  # they may name truth values
    own = _as_labels_spell(named, values, known) if by_name and not embedded else named
    _, classes = as_labels(values, k, len(values), own if by_name else positions, columns, name)
    return classes, [str(c) for c in (named if named is not None else classes.tolist())]


def _as_labels_spell(named: Any, labels: NDArray[Any], known: Sequence[Any]) -> Any:
    """Return the classes that columns name in the labels' or a map's letters, as p_red.soil names "red soil"."""
    distinct = {label for label in labels.tolist() if isinstance(label, str)}
    if not distinct <= set(named):
        for words in (distinct, set(known)):
            spelt = labels_in_order(tuple(named), words) if distinct <= words else None
            if spelt is not None:
                return spelt
    return named


def _class_names(path: str, pieces: Sequence[Piece], scores: Piece, k: int | None) -> list[Any] | None:
    """Names from a key ``classes`` or from the columns, as integers where every one is; None where there are none."""
    given = next((p for p in pieces if p.role == "classes"), None)
    names = None if given is None else given.values.ravel().tolist()
    if given is None and scores.columns is not None and len(scores.columns) == k:
        names = list(scores.columns)
    if names is None:
        return None
    k = len(names) if k is None else k
    if len(names) != k or len(set(names)) != k:
        raise InvalidInput(
            f"{path}: the class names must name each column once", seen=f"{len(names)} names for {k} columns"
        )
    if all(isinstance(name, str) and name.isdigit() and str(int(name)) == name for name in names):
        return [int(name) for name in names]
    return names


def _rows(group: Group) -> Rows:
    keys = {role: piece.key for role, piece in group.items()}
    arrays = {role: piece.values for role, piece in group.items()}
    scores = arrays.pop("scores")
    of_scores = group["scores"]
    return Rows(scores, keys=keys, sources=of_scores.sources, places=of_scores.places, **arrays)
