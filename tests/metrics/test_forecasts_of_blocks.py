"""What is kept of rows that came in blocks: told and read again, and refused where its parts do not belong together."""

import json

import numpy as np
import pytest

from calibrant.errors import FileProblem, InvalidInput
from calibrant.metrics.measuring import Measuring
from calibrant.metrics.views.blocks import CellForecasts, refuse_other_classes


def told(classes):
    rng = np.random.default_rng(0)
    if classes:
        p = rng.dirichlet(np.ones(classes), 60)
        summary = Measuring().update(rng.integers(0, classes, 60), p).summary
    else:
        p = rng.random(60)
        summary = Measuring().update((rng.random(60) < p).astype(int), p).summary
    return json.loads(json.dumps(summary.to_dict())), summary


@pytest.mark.parametrize("classes", [0, 3])
def test_what_was_told_is_read_again(classes):
    given, summary = told(classes)
    found = CellForecasts.from_dict(given, 15)
    assert found.to_dict() == given
    assert (found.n, found.is_event, found.classes.tolist()) == (60, not classes, summary.classes.tolist())
    assert len(found.cells) == 1 + classes


@pytest.mark.parametrize("classes", [0, 3])
def test_parts_that_do_not_belong_together_are_refused(classes):
    given, _ = told(classes)
    more = {
        "n": [-1, 1.5, True, "60", None],
        "classes": [[[0, 1, 2]], [[0], [1], [2]], 7] + ([[0, 1], [0, 1, 2, 3]] if classes else []),
        "is_event": [bool(classes)],
        "cells": [given["cells"][:-1], given["cells"] + given["cells"][-1:]],
        "losses": [{"nll": given["losses"]["nll"]}, {**given["losses"], "other": given["losses"]["nll"]}],
    }
    for name, values in more.items():
        for bad in values:
            with pytest.raises((FileProblem, ValueError, TypeError)) as refused:
                CellForecasts.from_dict({**given, name: bad}, 15)
            if name in ("n", "classes", "losses"):
                assert "do not belong together" in str(refused.value)


def test_rows_of_other_classes_are_not_added():
    labels = np.array(["a", "b", "c"])
    refuse_other_classes(False, labels, False, labels.copy())
    for event, others, words in (
        (True, labels, "one event and classes"),
        (False, labels[:2], "another number of classes"),
        (False, np.array(["a", "b", "d"]), "other classes"),
    ):
        with pytest.raises(InvalidInput, match=words):
            refuse_other_classes(False, labels, event, others)
    one, other = told(3)[1], told(3)[1]
    both = one + other
    assert both.n == 120
    assert both.cells[2].pairs.total == pytest.approx(120)
    assert both.losses["nll"].mean == pytest.approx(one.losses["nll"].mean)
