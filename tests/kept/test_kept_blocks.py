"""What maps learn from rows in blocks and of many classes, and what states of metrics tell, is what it was."""

import json
from itertools import pairwise

import numpy as np
import pytest
from tests.kept.comparing import check
from tests.kept.test_kept_maps import SETS, classes
from tests.kept.test_kept_metrics import COMMON, FRACTIONS, MANY

import calibrant
from calibrant import measure, registry
from calibrant.errors import CalibrantError
from calibrant.metrics.state import State
from calibrant.metrics.state import state as state_of
from calibrant.metrics.table import TABLE
from calibrant.passes import Block, in_memory, in_stream

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
LARGE = ("blend", "kcal", "kcal-linear", "kcal-logits")  # of all rows, or slow
STREAMED = [name for name in registry.names() if name not in LARGE]


def cut(block, places):
    """Return the block's rows in pieces, one of them empty."""
    ends = [0, *places, places[-1], block.n]
    pieces = [block.take(np.arange(a, b)) for a, b in pairwise(ends)]
    return in_stream(lambda: iter(pieces), block.n_classes, block.logits.shape[1], block.logits.dtype)


@pytest.mark.parametrize("name", STREAMED)
def test_blocks(name):
    """As from memory, with weights that are whole numbers, so that no sum depends on its order."""
    z, y, _ = SETS["four classes"] if name not in ("isotonic-s", "irova") else SETS["one event"]
    block = Block(z, y, np.random.default_rng(3).integers(0, 4, len(y)) * 1.0, z.shape[1])
    whole, parts = calibrant.make(name), calibrant.make(name)
    whole.fit_data(in_memory(block), check=True)
    parts.fit_data(cut(block, (1, 90, 91)), check=True)
    np.testing.assert_allclose(parts._map(z), whole._map(z), atol=1e-6)
    if "ets" in name:  # one of its folds has two optima, and the last bit of a sum decides between them
        return
    assert parts.fit_report_.held_out_after == pytest.approx(whole.fit_report_.held_out_after, rel=1e-5)


@pytest.mark.parametrize("name", ["ts", "ets", "vector", "matrix-odir", "dirichlet", "bts", "hoki", "iop"])
@pytest.mark.parametrize("k", [33, 40])
def test_many_classes(name, k):
    z, y = classes(6 * k, k, k)
    w = np.random.default_rng(k).integers(1, 3, len(y)) * 1.0
    fitted = calibrant.make(name).fit(z, y, sample_weight=w)
    report = fitted.fit_report_
    losses = [report.loss_before, report.loss_after]
    check("blocks", f"{name}, {k} classes", {"p": fitted.predict_proba(z[:40]), "losses": losses})


@pytest.mark.parametrize("of", ["an event", "classes"])
def test_states(of):
    """Of three parts, merged and told as JSON in between."""
    (y, p), w = (COMMON, FRACTIONS) if of == "an event" else (MANY, FRACTIONS[:350])
    found = {}
    for name in sorted(TABLE):
        try:
            parts = [state_of(name).update(y[i::3], p[i::3], sample_weight=w[i::3]) for i in range(3)]
        except CalibrantError as refusal:
            found[name] = str(refusal)
            continue
        told = json.loads(json.dumps(parts[1].to_dict()))
        total = parts[0] + State.from_dict(told) + parts[2]
        # What was told as JSON has the figure of what was not to 2e-6, as docs/metrics.md says.
        assert total.finalise() == pytest.approx((parts[2] + parts[1] + parts[0]).finalise(), rel=1e-9, abs=2e-6)
        found[name] = total.finalise()
        assert repr(total).startswith("State(")
        assert "no rows" in repr(state_of(name))
        assert "no rows" not in repr(total)
    check("blocks", f"states of {of}", found)


@pytest.mark.parametrize("of", ["an event", "classes"])
def test_texts(of):
    (y, p), w = (COMMON, FRACTIONS) if of == "an event" else (MANY, FRACTIONS[:350])
    found = measure(y, p, sample_weight=w, resamples=99)
    texts = {"text": str(found), "short": repr(found), "page": getattr(found, "_repr_html_", str)()}
    lines = [line.split() for line in texts["text"].splitlines()]
    check("blocks", f"texts of {of}", {**texts, "words": [len(line) for line in lines]})
