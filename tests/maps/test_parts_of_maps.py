"""Parts of maps against closed forms, where few rows of the other tests come by."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from calibrant import Binning, Hoki, KCal, OneVsRest, make
from calibrant.cells.fine import FineCells
from calibrant.maps import class_means
from calibrant.maps.binary.logit_spline import most_evident, spread
from calibrant.maps.binary.table import _as_knots
from calibrant.maps.projected import weighty
from calibrant.maps.scaling import gaussian_process
from calibrant.maps.scaling._curve import _in_units, _log_determinants
from calibrant.passes import Block

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")


def test_logarithms_of_determinants():
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(5, 4, 4)) * np.geomspace(1e-3, 1e3, 5)[:, None, None]
    matrices = roots @ roots.transpose(0, 2, 1)
    assert_allclose(_log_determinants(matrices), np.linalg.slogdet(matrices)[1], rtol=1e-9)
    unit, scale = _in_units(matrices)
    assert_allclose(np.einsum("gii->gi", unit), 1.0)
    assert_allclose(unit * scale[:, :, None] * scale[:, None, :], matrices)


def test_a_determinant_that_rounding_made_negative_has_its_least_eigenvalue_at_the_floor():
    """Of ones and a little less: eigenvalues 2 + δ and -δ, the second of which is read as 1e-14 of the first."""
    matrix = 9.0 * np.array([[[1.0, 1.0 + 1e-9], [1.0 + 1e-9, 1.0]]])
    largest = 2.0 + 1e-9
    assert_allclose(_log_determinants(matrix), np.log(largest) + np.log(1e-14 * largest) + 2 * np.log(9.0))


@pytest.mark.parametrize(("lower", "lengths"), [(True, (50, 80)), (False, (50, 80)), (True, (60, 60))])
def test_a_loss_is_clearly_lower_by_two_standard_errors(monkeypatch, lower, lengths):
    rng = np.random.default_rng(0)
    own, theirs = rng.normal(size=lengths[0]), rng.normal(size=lengths[1])
    own, theirs = (own - own.mean()) / own.std(), (theirs - theirs.mean()) / theirs.std() * 2.0
    if lengths[0] == lengths[1]:
        error = (theirs - own).std() / np.sqrt(lengths[0])
    else:
        error = np.sqrt(1.0 / lengths[0] + 4.0 / lengths[1])
    monkeypatch.setattr(class_means, "_losses", lambda trials, _: trials)
    for factor, wanted in ((2.02, True), (1.98, False)):
        moved = theirs + factor * error * (1 if lower else -1)
        assert class_means.clearly_lower(own, 1.0, moved, 1.0) == (wanted and lower)


def cells(scores, weights, outcomes):
    parts = [np.asarray(part, dtype=float) for part in (scores, weights, outcomes)]
    return FineCells(*parts, cuts=(parts[0][1:] + parts[0][:-1]) / 2)


def test_knots_are_where_the_shares_of_outcomes_are():
    """Even weights and outcomes: the knots of 101 cells lie at 0.5, 50 and 99.5 %."""
    even = cells(np.linspace(-5, 5, 101), np.full(101, 2.0), np.ones(101))
    assert_allclose(spread(even, 3, 1.0, 2.0), (np.array([-5.0, 0.0, 5.0]) - 1.0) / 2.0)
    # all events at the left, all others at the right: half of the knots are on either side
    apart = cells([-1.0, 1.0], [10.0, 1000.0], [10.0, 0.0])
    assert_allclose(spread(apart, 4, 0.0, 1.0), [-1.0, 1.0])


def test_scores_nearly_all_alike_have_knots_at_their_ends():
    alike = cells([-4.0, 0.5, 6.0], [1e-3, 1000.0, 1e-3], [5e-4, 500.0, 5e-4])
    assert_allclose(spread(alike, 6, 0.5, 2.0), [(-4.0 - 0.5) / 2, (6.0 - 0.5) / 2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_knots_of_steps_are_not_below_their_edges(dtype):
    edges = np.array([-1.1, 0.1, 0.3, 2.7])
    knots = _as_knots(edges, np.dtype(dtype))
    assert knots.dtype == dtype
    assert knots[0] == knots[1]
    assert (knots[1:].astype(float) >= edges).all()
    assert (np.nextafter(knots[1:], dtype(-np.inf)).astype(float) < edges).all()
    assert _as_knots(np.zeros(0), np.dtype(dtype)).tolist() == [0.0]


@pytest.mark.parametrize("share", ["none", "all"])
def test_tables_side_by_side_answer_as_each_alone(share):
    rng = np.random.default_rng(1)
    z = rng.normal(size=(400, 3)) * 2
    y = (z + rng.gumbel(size=(400, 3))).argmax(axis=1)
    lift = OneVsRest(Binning(edges="equal_mass", bins=7, monotone=False), share=share).fit(z, y)
    q = lift.predict_marginals(z)
    for k in range(3):
        own = lift.maps_[lift.groups_[k]]
        odds = z[:, k] - np.log(np.exp(np.delete(z, k, axis=1)).sum(axis=1))
        clear = np.abs(odds[:, None] - own.edges_).min(axis=1) > 1e-9
        answers = own.representatives_[np.searchsorted(own.edges_, odds, side="right")]
        assert_allclose(q[clear, k], answers[clear], rtol=1e-9)


def test_class_means_that_go_on_learning_move_their_bandwidth_by_their_rows():
    """A mean of n/K rows lies about the mean as 1 + K/n: the bandwidth follows its root."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 4)) * 3
    y = np.arange(30) % 6
    x = centres[y] + rng.normal(size=(30, 4))
    fitted = KCal("identity").fit(x, y)
    fitted.support_ = "class means"
    before, total = fitted.bandwidth_, fitted.weights_.sum()
    fitted.partial_fit(x + 0.1, y)
    assert fitted.bandwidth_ == pytest.approx(before * np.sqrt((1 + 6 / (2 * total)) / (1 + 6 / total)))


@pytest.mark.parametrize("init", ["accuracy", "confidence"])
def test_hokis_confidence_is_what_the_top_class_gets(init):
    rng = np.random.default_rng(2)
    z = rng.normal(size=(300, 3)) * 3
    y = (z / 2 + rng.gumbel(size=(300, 3))).argmax(axis=1)
    fitted = Hoki(("gaussian", 0.0, 1.5), bins=5, init=init).fit(z, y)
    p, confidence = fitted.predict_proba(z), fitted._confidence(z)
    kept = confidence > 0.5  # where no other class could pass it
    assert_allclose(p.max(axis=1)[kept], confidence[kept], atol=1e-6)
    others = np.sort(softmax(z, axis=1), axis=1)[:, :-1]
    shares = np.sort(p, axis=1)[:, :-1]
    assert_allclose(
        shares[kept] / shares[kept].sum(axis=1, keepdims=True), others[kept] / others[kept].sum(axis=1, keepdims=True)
    )


def test_a_learnt_projection_has_its_formula():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    z = rng.normal(size=(120, 3))
    y = (z + rng.gumbel(size=(120, 3))).argmax(axis=1)
    fitted = make("kcal-logits").set_params(projection="learned").fit(z, y)
    answers = fitted.to_torch()(torch.from_numpy(z)).numpy()
    assert_allclose(answers, fitted.predict_proba(z), atol=1e-6)


@pytest.mark.parametrize(("largest", "end"), [(0.1, 2.0), (50.0, 50.0), (1e9, 2e6)])
def test_inducing_points_go_from_nought_to_the_largest_and_no_further_than_a_million_units(largest, end):
    points = gaussian_process._inducing_points(2.0, largest, 9)
    assert points[0] == 0.0
    assert points[-1] == pytest.approx(end)
    logs = np.log1p(points / (gaussian_process._FINEST * 2.0))
    assert_allclose(np.diff(logs), logs[-1] / 8)


def parabola(heights, strengths):
    """A problem whose evidence at each strength is given."""
    rank = 3
    values = 0.5 * rank * np.log(strengths) - np.asarray(heights)
    sums = SimpleNamespace(value=values, hessian=np.broadcast_to(np.eye(5), (len(strengths), 5, 5)))
    found = SimpleNamespace(sums=sums, passes=7)
    return SimpleNamespace(solve=lambda: found, features=np.zeros((9, rank + 2)), strengths=strengths)


@pytest.mark.parametrize(
    ("heights", "best"),
    [
        ([-9.0, -4.0, -1.0, 0.0, -1.0, -4.0], 3.0),
        ([-np.inf, -5.0, -1.0, 0.0, -2.0, -6.0], 3.0 - 1.0 / 6.0),
        ([-1.0, 0.0, -2.0, -9.0, -9.0, -9.0], 1.0 - 1.0 / 6.0),
        ([-np.inf, 0.0, -2.0, -9.0, -9.0, -9.0], 1.0),  # a neighbour that is not finite: no parabola
        ([-9.0, -9.0, -9.0, -2.0, 0.0, -np.inf], 4.0),
        ([0.0, -1.0, -2.0, -3.0, -4.0, -5.0], 0.0),  # at either end
        ([-5.0, -4.0, -3.0, -2.0, -1.0, 0.0], 5.0),
        ([-9.0, 0.0, 0.0, -9.0, -9.0, -9.0], 1.5),  # of two alike the larger, then half a step back
        ([-np.inf, -np.inf, -1.0, 0.0, -1.0, -9.0], 3.0),
    ],
)
def test_the_most_evident_strength_is_the_top_of_a_parabola(heights, best):
    strengths = 10.0 ** np.arange(6)
    strength, passes = most_evident(parabola(heights, strengths))
    assert np.log10(strength) == pytest.approx(best)
    assert passes == 7


@pytest.mark.parametrize(("more", "again"), [(0, True), (-1, False), (1, True)])
def test_a_bandwidth_is_searched_again_when_rows_have_become_so_many(more, again):
    rng = np.random.default_rng(0)
    n, total = 400, 500  # a quarter more
    y = np.arange(total + 1) % 2
    x = y[:, None] * 1.5 + rng.normal(size=(total + 1, 2))
    fitted = KCal("identity").fit(x[:n], y[:n])
    fitted.partial_fit(x[n : total + more], y[n : total + more])
    assert (fitted.searched_at_ == total + more) == again


def test_rows_without_a_weight_are_left_out():
    rows = Block(np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1]), np.array([0.0, 1.0, 0.0, 2.0]), 2)
    kept = weighty(rows)
    assert_allclose(kept.logits, rows.logits[[1, 3]])
    assert kept.labels.tolist() == [1, 1]
    assert weighty(kept) is kept
    x = np.random.default_rng(0).normal(size=(40, 3))
    y, w = np.arange(40) % 2, (np.arange(40) % 4 > 0).astype(float)
    fitted, alone = KCal("lda").fit(x, y, sample_weight=w), KCal("lda").fit(x[w > 0], y[w > 0])
    assert len(fitted.points_) == len(alone.points_) == 30
    assert_allclose(fitted.predict_proba(x), alone.predict_proba(x))
