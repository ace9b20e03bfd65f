"""A binned state whose bins hold one score each knows all that its rows say, whatever is asked of it."""

import numpy as np
import pytest

from calibrant.errors import CalibrantError
from calibrant.metrics import calibration_error
from calibrant.metrics.measuring import Measuring
from calibrant.metrics.state import BinnedState, state

BINS = 40
ASKED = [
    ("binned", {}),
    ("binned", {"norm": 2}),
    ("binned", {"norm": "max"}),
    ("debiased", {}),
    ("binned", {"bins": 7, "edges": "equal_mass"}),
    ("binned", {"edges": [0.0, 0.3, 1.0], "norm": 2}),
    ("sweep", {}),
    ("ks", {}),
    ("ecce", {}),
    ("kde", {"norm": 2}),
    ("smooth", {"width": 0.05}),
]


def rows(n, k, seed=0):
    """Scores in the middle of bins; of several classes in bins of a coarser grid, so that rows sum to one."""
    rng = np.random.default_rng(seed)
    w = rng.integers(1, 4, n) * 1.0
    if k == 1:
        p = (rng.integers(0, BINS, n) + 0.5) / BINS
        return (rng.random(n) < p).astype(int), p, w
    p = (rng.multinomial(8, np.ones(k) / k, n) * 4 + (BINS / k - 32 / k)) / BINS
    return (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1), p, w


def parts_of(y, p, w, **given):
    found = [BinnedState(bins=BINS, **given).update(y[i::3], p[i::3], sample_weight=w[i::3]) for i in range(3)]
    return found[0] + found[1].merge(found[2])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("estimator", "options"), ASKED)
def test_a_state_of_an_event_says_what_its_rows_say(estimator, options, weighted):
    y, p, w = rows(300, 1)
    w = w if weighted else np.ones(300)
    if weighted:  # as many rows: a state does not know which
        y, p, w = np.repeat(y, w.astype(int)), np.repeat(p, w.astype(int)), np.ones(int(w.sum()))
    own = {"bins": BINS} if estimator in ("binned", "debiased") and not {"bins", "edges"} & options.keys() else {}
    if estimator == "debiased":
        own["edges"] = "equal_width"
    wanted = calibration_error(y, p, estimator=estimator, **{**own, **options})
    assert parts_of(y, p, w).finalise(estimator, **options) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("view", ["top_label", "class_wise", 0, 2])
@pytest.mark.parametrize("threshold", [None, "1/K", 0.25])
@pytest.mark.parametrize("norm", [1, 2])
def test_a_state_of_classes_says_what_its_rows_say(view, threshold, norm):
    y, p, w = rows(200, 4)
    if threshold is not None and view != "class_wise":
        with pytest.raises(CalibrantError, match="class-wise"):
            BinnedState(view=view, threshold=threshold)
        return
    given = {} if threshold is None else {"threshold": threshold}
    wanted = calibration_error(y, p, view=view, norm=norm, bins=BINS, sample_weight=w, **given)
    found = parts_of(y, p, w, view=view, **given)
    assert found.finalise(norm=norm) == pytest.approx(wanted, abs=1e-12)
    groups = 4 if view == "class_wise" else 1
    weight = w.sum() * groups if threshold is None else (w[:, None] * (p > 0.25)).sum()
    assert repr(found) == f"BinnedState(view={view!r}, 40 bins, {groups} group(s) of total weight {weight:g})"
    assert repr(BinnedState(view=view)) == f"BinnedState(view={view!r}, 15 bins)"


@pytest.mark.parametrize(
    "given", [{"bins": "sturges"}, {"edges": "equal_mass"}, {"threshold": "prior", "view": "class_wise"}]
)
def test_edges_that_depend_on_the_data_are_refused(given):
    with pytest.raises(CalibrantError, match="do not depend on the data"):
        BinnedState(**given)


def test_states_of_other_settings_are_not_merged():
    y, p, _ = rows(30, 1)
    pairs = [
        (BinnedState(bins=4), BinnedState(bins=5)),
        (BinnedState(), state("ece")),
        (state("brier"), state("nll")),
        (Measuring(resamples=19), Measuring(resamples=20)),
        (Measuring(), Measuring(bins=7)),
    ]
    for one, other in pairs:
        for part in (one, other):
            part.update(y, p)
        with pytest.raises(CalibrantError, match="cannot be merged"):
            one.merge(other)


def test_nothing_is_merged_from_a_state_without_rows():
    y, p, _ = rows(30, 1)
    full = Measuring(resamples=19).update(y, p)
    before = full.finalise().to_dict()
    assert full.merge(Measuring(resamples=19)).finalise().to_dict() == before
    assert Measuring(resamples=19).merge(full).finalise().to_dict() == before
    one = state("brier").update(y, p)
    assert one.merge(state("brier")).finalise() == pytest.approx(np.mean((y - p) ** 2))
    assert state("brier").merge(one).finalise() == pytest.approx(np.mean((y - p) ** 2))
