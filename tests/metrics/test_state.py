"""Merging equals concatenating."""

import json

import numpy as np
import pytest

from calibrant import metrics
from calibrant.errors import CalibrantError, InvalidInput
from calibrant.metrics import BinnedState, calibration_error, cwece, ece
from calibrant.metrics.measuring import Measuring, measure
from calibrant.metrics.metric import BinSums, Vector
from calibrant.metrics.state import State
from calibrant.metrics.state import state as metrics_state
from calibrant.metrics.table import TABLE
from calibrant.metrics.views import forecasts
from calibrant.testing import check_merging


@pytest.fixture
def rows(rng):
    p = rng.dirichlet(np.ones(4), 300)
    return rng.integers(0, 4, 300), p, rng.random(300)


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"view": "class_wise"},
        {"view": "class_wise", "threshold": "1/K"},
        {"view": "pooled", "bins": 30},
        {"view": 2, "edges": [0.2, 0.7]},
    ],
)
@pytest.mark.parametrize("estimator", ["binned", "debiased"])
def test_merging_is_concatenating(rows, choice, estimator):
    y, p, w = rows
    w = w if estimator == "binned" else np.ceil(4 * w)  # sums of fractional weights do not tell their number of rows
    states = [BinnedState(**choice).update(y[i::3], p[i::3], sample_weight=w[i::3]) for i in range(3)]
    merged = states[0].merge(states[1]).merge(states[2])
    whole = calibration_error(y, p, sample_weight=w, estimator=estimator, **{"edges": "equal_width", **choice})
    assert merged.finalise(estimator) == pytest.approx(whole, abs=1e-12)


def test_batches_are_concatenated(rows):
    y, p, _ = rows
    state = BinnedState()
    for start in range(0, 300, 70):
        state.update(y[start : start + 70], p[start : start + 70])
    assert state.finalise(norm="max") == pytest.approx(calibration_error(y, p, norm="max"), abs=1e-12)


def test_marginals_and_one_event(rng):
    p, y = rng.random((90, 3)), rng.integers(0, 3, 90)
    state = BinnedState(view="marginals").update(y, p)
    assert state.finalise() == pytest.approx(calibration_error(y, p, view="marginals"), abs=1e-12)
    state = BinnedState(view="class_wise", threshold=0.3).update(y == 1, p[:, 1])
    whole = calibration_error(y == 1, p[:, 1], view="class_wise", threshold=0.3)
    assert state.finalise() == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize("estimator", ["sweep", "ks", "kde", "smooth", "label_binned"])
def test_fine_cells_answer_like_the_rows(rng, estimator):
    p = rng.random(3000)
    y = rng.random(3000) < p**2
    state = BinnedState(bins=4096).update(y[:1000], p[:1000]).merge(BinnedState(bins=4096).update(y[1000:], p[1000:]))
    assert state.finalise(estimator) == pytest.approx(calibration_error(y, p, estimator=estimator), abs=3e-4)
    assert state.finalise(edges="equal_mass", bins=15) == pytest.approx(
        calibration_error(y, p, edges="equal_mass"), abs=3e-4
    )


def test_what_cannot_be_merged_is_refused(rows):
    y, p, _ = rows
    with pytest.raises(ValueError, match="do not depend on the data"):
        BinnedState(edges="equal_mass")
    with pytest.raises(ValueError, match="do not depend on the data"):
        BinnedState(view="class_wise", threshold="prior")
    with pytest.raises(ValueError, match="without rows"):
        BinnedState().finalise()
    with pytest.raises(ValueError, match="cannot be merged"):
        BinnedState().merge(BinnedState(bins=3))
    with pytest.raises(ValueError, match="number of classes"):
        BinnedState(view="class_wise").update(y, p).update([0, 1], [[0.5, 0.5], [0.1, 0.9]])


def test_states_know_their_classes(rows):
    y, p, _ = rows
    names = np.array(["cat", "dog", "ant", "bee"])[: p.shape[1]]
    state = BinnedState(view="class_wise").update(names[y], p, classes=names)
    with pytest.raises(InvalidInput, match="other classes"):
        state.update(names[y], p, classes=names[::-1])
    with pytest.raises(InvalidInput, match="other classes"):
        state.merge(BinnedState(view="class_wise").update(y, p))
    assert state.update(names[y], p, classes=names).finalise() == pytest.approx(cwece(y, p))
    top = BinnedState().update(names[y], p, classes=names).update(y, p)
    assert top.finalise() == pytest.approx(ece(y, p))


def test_states_refuse_what_metrics_refuse(rows):
    y, p, _ = rows
    with pytest.raises(InvalidInput, match="threshold needs a class-wise view"):
        BinnedState(threshold=0.2)
    with pytest.raises(InvalidInput, match="'class_wise', 'marginals'"):
        BinnedState(view="classwise").update(y, p)
    state = BinnedState().update(y, p)
    with pytest.raises(InvalidInput, match="no such estimator"):
        state.finalise("bin")
    with pytest.raises(InvalidInput, match="no such norm"):
        state.finalise(norm=3)
    assert f"total weight {len(y)}" in repr(state)
    assert "15 bins" in repr(BinnedState())


WITH_STATE = [name for name, row in TABLE.items() if type(row) is not Vector]


@pytest.mark.parametrize("name", WITH_STATE)
def test_every_metric_is_its_state(rng, name):
    """Few distinct scores, so that cells are exact: states in any blocks equal the function, through JSON too."""
    p = np.round(rng.random(400), 2)
    y = (rng.random(400) < p**1.3).astype(int)
    given = {"threshold": 0.3} if name in ("net_benefit", "recalibration_benefit") else {}
    parts = [metrics.state(name, **given).update(y[i::3], p[i::3]) for i in range(3)]
    total = parts[2] + (parts[0] + parts[1])
    again = metrics.State.from_dict(json.loads(json.dumps(total.to_dict())))
    function = getattr(metrics, name)
    whole = function(p) if name == "sharpness" else function(y, p, **given)
    assert total.finalise() == pytest.approx(whole, abs=1e-9)
    assert again.finalise() == pytest.approx(whole, abs=1e-9)
    check_merging(lambda: metrics.state(name, **given))


@pytest.mark.parametrize("name", ["ece_sweep", "ks_error", "smece", "ece_crossfit", "ece_kde", "ecce"])
def test_many_scores_become_cells_of_a_grid(rng, name):
    p = rng.beta(0.3, 2, 20_000)
    y = (rng.random(20_000) < p**1.3).astype(int)
    state = metrics.state(name)
    for rows in np.array_split(np.arange(20_000), 7):
        state.update(y[rows], p[rows])
    assert state.finalise() == pytest.approx(getattr(metrics, name)(y, p), abs=1e-3)


KB = 1024


def many(rng, classes, n=100_000):
    """Return continuous scores of so many classes, or of one event, and labels."""
    if classes == 1:
        p = rng.beta(0.6, 2.0, n)
        return (rng.random(n) < p).astype(int), p
    p = np.exp(rng.normal(size=(n, classes)) * 2)
    p /= p.sum(axis=1, keepdims=True)
    return np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), classes - 1), p


@pytest.mark.parametrize("weighted", ["no", "counts", "fractions"])
@pytest.mark.parametrize("classes", [1, 2, 4, 10])
def test_every_state_has_a_few_kilobytes(rng, classes, weighted):
    """Of 100,000 continuous scores; saved and merged states give the figure of those that were not saved."""
    y, p = many(rng, classes)
    w = {"no": None, "counts": rng.integers(1, 4, len(y)), "fractions": rng.gamma(2, 1.0, len(y))}[weighted]
    half = np.arange(len(y)) < 70_000
    for name in WITH_STATE:
        given = {"threshold": 0.3} if name in ("net_benefit", "recalibration_benefit") else {}
        made = [metrics_state(name, **given) for _ in range(2)]
        for state, rows in zip(made, (half, ~half), strict=True):
            state.update(y[rows], p[rows], sample_weight=None if w is None else w[rows])
        told = [json.dumps(state.to_dict()) for state in (*made, made[0] + made[1])]
        assert max(map(len, told)) <= 8 * KB, name
        if name in ("ece", "ace", "auroc", "smece", "calibration_slope", "e90", "cwece"):
            again = State.from_dict(json.loads(told[0])) + State.from_dict(json.loads(told[1]))
            assert again.finalise() == pytest.approx((made[1] + made[0]).finalise(), abs=2e-6), name
    told = json.dumps(Measuring().update(y, p, sample_weight=w).to_dict())
    most = 8 * KB if classes < 10 else 12 * KB
    assert len(told) <= most


def test_states_of_many_classes_have_a_fraction_of_a_kilobyte_for_each(rng):
    y, p = many(rng, 100, 5000)
    w = rng.gamma(2, 1.0, 5000)
    for state in (metrics_state("ace"), metrics_state("cwece"), Measuring()):
        assert len(json.dumps(state.update(y, p, sample_weight=w).to_dict())) <= 0.7 * KB * 100


def test_a_state_refuses_what_it_cannot_hold(rng):
    p = rng.random(30)
    with pytest.raises(InvalidInput, match="no such metric"):
        metrics.state("eec")
    with pytest.raises(InvalidInput, match="pairs of rows"):
        metrics.state("skce").update(p > 0.5, p)
    with pytest.raises(InvalidInput, match="cannot be merged"):
        metrics.state("ece").merge(metrics.state("ece", bins=3))
    with pytest.raises(InvalidInput, match="no state"):
        metrics.State.from_dict({"format": 1, "metric": "eec"})
    assert "no rows" in repr(metrics.state("ece"))


def test_a_view_without_weight_is_refused(rng):
    p = rng.dirichlet([1, 1, 1], size=50)
    told = metrics.Measuring().update(rng.integers(0, 3, 50), p).to_dict()
    told["summary"]["cells"][2] |= {"places": [], "weights": [], "happened": []}
    with pytest.raises(CalibrantError, match="no table of summed cells"):
        metrics.Measuring.from_dict(told)


def test_measuring_in_blocks_is_measuring(rng):
    z = rng.normal(size=(3000, 4)) * 1.5
    p = np.exp(2 * z) / np.exp(2 * z).sum(axis=1, keepdims=True)
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    parts = [metrics.Measuring(resamples=99).update(y[i::4], p[i::4]) for i in range(4)]
    total = (parts[3] + parts[1]) + (parts[0] + parts[2])
    again = metrics.Measuring.from_dict(json.loads(json.dumps(total.to_dict()))).finalise()
    whole, found = metrics.measure(y, p, resamples=99), total.finalise()
    assert again.verdict == found.verdict
    for name, figure in found.metrics.items():  # mean scores are told to a hundred-thousandth of a cell
        other = again.metrics[name]
        assert (other.estimate, other.low, other.high) == pytest.approx(
            (figure.estimate, figure.low, figure.high), abs=1e-6
        ), name
    assert (found.n, found.shape) == (whole.n, whole.shape)
    for name in ("ece", "mce", "cwece", "brier", "nll"):
        assert found.metrics[name].estimate == pytest.approx(whole.metrics[name].estimate, abs=1e-9)
    for name, interval in whole.metrics.items():
        ends = [(interval.low, found.metrics[name].low), (interval.high, found.metrics[name].high)]
        for one, two in ends:
            assert two == pytest.approx(one, abs=0.012), name
    assert len(found.class_curves) == 4


def test_measure_validates_once(rng, monkeypatch):
    calls = []
    checked = forecasts.as_probabilities_of
    monkeypatch.setattr(forecasts, "as_probabilities_of", lambda *a, **k: calls.append(1) or checked(*a, **k))
    p = rng.dirichlet(np.ones(3), 200)
    metrics.measure(rng.integers(0, 3, 200), p, resamples=50)
    assert len(calls) == 1


FORGERIES = [
    ("part", None, "groups"),
    ("part", "sums", [[[1.0]], [[2.0]], [[0.5]]]),
    ("part", "sums", "x"),
    ("kind", None, "moments"),
    ("classes", None, [0]),
    ("classes", None, [1e300, 0.0, 2.0]),
    ("metric", None, "brier"),
]


@pytest.mark.parametrize(("place", "inside", "value"), FORGERIES)
def test_states_that_contradict_themselves_are_refused(rows, place, inside, value):
    y, p, _ = rows
    told = json.loads(json.dumps(metrics_state("cwece").update(y, p).to_dict()))
    assert State.from_dict(told).finalise() == pytest.approx(cwece(y, p))
    (told[place] if inside else told)[inside or place] = value
    with pytest.raises(CalibrantError):
        State.from_dict(told)


@pytest.mark.parametrize(
    ("row", "value"),
    [
        *[("places", 1e6), ("places", -1), ("weights", 0.0), ("weights", 1e200), ("weights", "nan")],
        *[("happened", 7.0), ("happened", -1.0), ("rows", 0), ("rows", 1e30)],
    ],
)
def test_cells_that_contradict_themselves_are_refused(rows, row, value):
    y, p, w = rows
    told = json.loads(json.dumps(metrics_state("smece").update(y, p, sample_weight=w).to_dict()))
    told["part"]["groups"][0][row][0] = value
    with pytest.raises(CalibrantError):
        State.from_dict(told)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weight", -1.0),
        ("squares", -1.0),
        ("shift", "1"),
        ("least", 9.0),
        ("infinite", 1e9),
        ("whole", 1),
        ("third", 1e200),
    ],
)
def test_moments_that_contradict_themselves_are_refused(rows, name, value):
    y, p, _ = rows
    told = json.loads(json.dumps(metrics_state("brier").update(y, p).to_dict()))
    told["part"][name] = value
    with pytest.raises(CalibrantError):
        State.from_dict(told)


@pytest.mark.parametrize(
    ("place", "value"), [("n", 0), ("n", "1"), ("cells", []), ("losses", {}), ("classes", [[0, 1]])]
)
def test_measurements_that_contradict_themselves_are_refused(rows, place, value):
    y, p, _ = rows
    told = json.loads(json.dumps(Measuring(resamples=19).update(y, p).to_dict()))
    told["summary"][place] = value
    with pytest.raises(CalibrantError):
        Measuring.from_dict(told)


@pytest.mark.parametrize("name", sorted(set(TABLE) - {"net_benefit", "recalibration_benefit"}))
def test_options_that_a_metric_has_not_are_refused_at_once(name):
    with pytest.raises(InvalidInput, match="no option 'colour'"):
        metrics_state(name, colour=1)


@pytest.mark.parametrize("name", ["net_benefit", "recalibration_benefit"])
def test_options_that_a_metric_must_have_are_asked_for(name):
    assert "0.2" in repr(metrics_state(name, threshold=0.2))
    with pytest.raises(InvalidInput, match="needs a threshold"):
        metrics_state(name)
    with pytest.raises(InvalidInput, match="no option 'colour'"):
        metrics_state(name, threshold=0.2, colour=1)


def test_moments_that_overflow_are_refused(rows):
    y, p = rows[:2]
    told = metrics.Measuring().update(y, p).to_dict()
    told["summary"]["losses"]["nll"]["second"] = 1e250
    with pytest.raises(CalibrantError, match="moments"):
        metrics.Measuring.from_dict(told)


def test_squares_of_weights_below_zero_are_refused_before_a_root_is_taken_of_them(rows):
    told = metrics_state("brier").update(*rows[:2]).to_dict()
    told["part"].update(squares=-1.0, whole=False)
    with pytest.raises(CalibrantError, match="moments"):
        State.from_dict(told)


@pytest.mark.parametrize(
    "sums",
    [
        [[[4.0]], [[5.0]], [[1.0]]],  # scores above one
        [[[4.0]], [[1.0]], [[5.0]]],  # more outcomes than rows
        [[[4.0]], [[-1.0]], [[1.0]]],
        [[[4.0]], [[float("inf")]], [[1.0]]],
        [[4.0], [1.0], [1.0]],
    ],
)
def test_sums_by_bin_that_contradict_themselves_are_refused(sums):
    with pytest.raises(CalibrantError, match="sum"):
        BinSums.from_dict({"sums": sums})
    assert BinSums.from_dict({"sums": [[[4.0]], [[4.0]], [[4.0]]]}).sums.shape == (3, 1, 1)


@pytest.mark.parametrize("name", ["auroc", "scaled_brier", "calibration_slope", "smece", "ece", "brier"])
def test_sums_of_no_rows_are_refused(rng, name):
    p = rng.random(40)
    told = metrics_state(name).update((rng.random(40) < p).astype(int), p).to_dict()
    if told["kind"] == "cells":
        told["part"]["groups"][0] |= {"scores": [], "weights": [], "happened": []}
    elif told["kind"] == "moments":
        told["part"].update(weight=0.0, squares=0.0, first=0.0, second=0.0, third=0.0)
    else:
        told["part"]["sums"] = (0 * np.array(told["part"]["sums"])).tolist()
    with pytest.raises(CalibrantError, match="this is no"):
        State.from_dict(told)


def test_a_state_refuses_a_figure_that_its_rows_do_not_have():
    """As the function does: scores that are all one have no slope, rows of one outcome no area."""
    for name, y in (("calibration_slope", [0, 1, 1, 0]), ("auroc", [1, 1, 1, 1])):
        with pytest.raises(InvalidInput, match="is not defined for these rows"):
            metrics.state(name).update(y, [0.3] * 4).finalise()


def test_merging_is_checked_of_maps_and_states_and_nothing_else():
    check_merging(lambda: metrics_state("ece"))
    with pytest.raises(InvalidInput, match="neither a map nor a function"):
        check_merging("ece")


def test_resamples_that_could_not_be_waited_for_are_refused():
    """Found by a fuzzer: a forged state asked for 2^70 of them."""
    told = {**Measuring(resamples=99).update([0, 1], [0.2, 0.7]).to_dict()}
    told["settings"] = {**told["settings"], "resamples": 2**70}
    with pytest.raises(CalibrantError, match="resamples"):
        Measuring.from_dict(told)
    with pytest.raises(InvalidInput, match="at most 100,000"):
        metrics.measure([0, 1], [0.2, 0.7], resamples=10**6)


@pytest.mark.parametrize("name", ["auroc", "ks_error"])
def test_more_cells_are_finer(rng, name):
    p = rng.beta(1, 8, 20_000)
    y = rng.random(20_000) < p**1.2
    whole = getattr(metrics, name)(y, p)
    coarse, fine = (metrics_state(name, cells=cells).update(y, p) for cells in (16, 4096))
    assert abs(fine.finalise() - whole) < min(1e-4, 0.2 * abs(coarse.finalise() - whole))
    again = State.from_dict(json.loads(json.dumps(fine.to_dict())))
    assert again.cells == 4096
    assert again.finalise() == pytest.approx(fine.finalise(), abs=2e-6)
    with pytest.raises(InvalidInput, match="different metrics"):
        fine.merge(coarse)


@pytest.mark.parametrize("cells", [15, 65_537, 100.5, True, "many"])
def test_a_number_of_cells_that_is_none(cells):
    for make in (lambda: metrics_state("auroc", cells=cells), lambda: Measuring(cells=cells)):
        with pytest.raises(InvalidInput, match="no such number of cells"):
            make()


def test_measuring_in_more_cells(rng):
    p = rng.beta(1, 8, 20_000)
    y = rng.random(20_000) < p**1.2
    whole = measure(y, p, resamples=19).metrics["ks_error"].estimate
    coarse, fine = (Measuring(resamples=19, cells=cells).update(y, p) for cells in (16, 2048))
    gaps = [abs(state.finalise().metrics["ks_error"].estimate - whole) for state in (coarse, fine)]
    assert gaps[1] < 0.2 * gaps[0]
    again = Measuring.from_dict(json.loads(json.dumps(fine.to_dict())))
    assert again.settings.cells == 2048
    with pytest.raises(InvalidInput, match="different settings"):
        fine.merge(coarse)
