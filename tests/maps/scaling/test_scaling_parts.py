"""Parts of scaling maps by themselves: what quadratics say of priors, bins of equal weight, variances between bins."""

import numpy as np
import pytest
from scipy.special import log_softmax

from calibrant.maps.scaling import binwise, gaussian_process, temperature
from calibrant.maps.scaling._curve import Family, Local, Optimum, _log_determinants
from calibrant.passes import Block, in_memory


def family(rng, low, size=3, knots=4):
    root = rng.normal(size=(size, size))
    centre = rng.normal(size=size)
    precision = root @ root.T + np.eye(size)
    return Family(rng.normal(size=(1, knots)), rng.normal(size=(knots, size)), centre, precision, np.zeros(size), low)


@pytest.mark.parametrize("low", [-np.inf, -0.5])
def test_optima_under_priors_are_those_of_the_quadratic(low):
    """Within bounds by every choice of parameters that lie on theirs."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        root = rng.normal(size=(6, 4))
        here = Local(rng.normal(size=(1, 4)), 7.5, rng.normal(size=4), root.T @ root)
        families = [family(rng, low) for _ in range(3)]
        for own, found in zip(families, here.under(families), strict=True):

            def loss(theta, own=own, here=here):
                move = (own.values(theta) - here.values).ravel()
                return here.loss + move @ here.gradient + 0.5 * move @ here.hessian @ move

            def penalised(theta, own=own, loss=loss):
                away = theta - own.centre
                return loss(theta) + 0.5 * away @ own.precision @ away

            best = None
            for held in np.ndindex(2, 2, 2):
                free = np.array(held) == 0
                if np.isinf(low) and not free.all():
                    continue
                bend = own.basis.T @ here.hessian @ own.basis + own.precision
                zero = np.where(free, 0.0, low)
                slope = np.array([(penalised(zero + e) - penalised(zero - e)) / 2e-3 for e in 1e-3 * np.eye(3)])
                theta = zero.copy()
                theta[free] -= np.linalg.solve(bend[np.ix_(free, free)], slope[free]) if free.any() else 0.0
                if (theta >= low - 1e-9).all() and (best is None or penalised(theta) < penalised(best)):
                    best = theta
            np.testing.assert_allclose(found.theta, best, atol=1e-6)
            assert found.loss == pytest.approx(loss(best), abs=1e-6)
            np.testing.assert_allclose(found.hessian, own.basis.T @ here.hessian @ own.basis + own.precision)
            gained = 0.5 * (np.linalg.slogdet(own.precision)[1] - np.linalg.slogdet(found.hessian)[1])
            assert found.evidence == pytest.approx(gained - penalised(best), abs=1e-6)
            held_back = np.trace(np.linalg.solve(found.hessian, own.precision))
            assert found.effective_parameters == pytest.approx(3 - held_back)


def test_logarithms_of_determinants_in_any_unit():
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(4, 3, 3))
    units = 10.0 ** rng.integers(-20, 20, (4, 3))
    matrices = roots @ roots.transpose(0, 2, 1) * units[:, :, None] * units[:, None, :]
    wanted = np.linalg.slogdet(roots)[1] * 2 + 2 * np.log(units).sum(axis=1)
    np.testing.assert_allclose(_log_determinants(matrices), wanted)
    flat = np.array([[[2.0, 2.0], [2.0, 2.0]]])  # in units of its diagonal the values are 2 and 0, which counts 2e-14
    assert _log_determinants(flat)[0] == pytest.approx(np.log(2.0) + np.log(2e-14) + 2 * np.log(2.0))
    both = _log_determinants(np.concatenate([flat, 3.0 * np.eye(2)[None]]))
    assert both[1] == pytest.approx(2 * np.log(3.0))


def test_what_a_prior_alone_decides_counts_as_nothing():
    rng = np.random.default_rng(1)
    own = family(rng, -np.inf)
    told = Optimum(own, np.zeros(3), 0.0, own.precision, 0.0)
    assert told.effective_parameters == pytest.approx(1e-6)
    free = Optimum(own, np.zeros(3), 0.0, own.precision * 1e12, 0.0)
    assert free.effective_parameters == pytest.approx(3.0)


def test_edges_of_equal_weight_lie_halfway_between_neighbours():
    """The first score with at least its share of the weight at or below it ends a bin; ties are never parted."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 40))
        x, w = rng.integers(0, 12, n) / 2, rng.choice([0.0, 1.0, 4.0, 10.0], n)
        w[0] = 10.0
        values = sorted(set(x[w > 0]))
        total = w.sum()
        count = int(min(5, max(1, total // binwise._LEAST_WEIGHT)))
        wanted = []
        for bin_ in range(1, count):
            ends = [i for i, v in enumerate(values[:-1]) if w[x <= v].sum() * count >= bin_ * total - 1e-9 * total]
            if ends and ends[0] not in wanted:
                wanted.append(ends[0])
        found = binwise.equal_weight_edges(x, w, 5)
        assert found.tolist() == [(values[i] + values[i + 1]) / 2 for i in wanted]


def test_priors_of_bins_are_added_and_taken_away():
    rng = np.random.default_rng(2)
    sums, away, variance = rng.normal(size=(4, 3)), rng.normal(size=4), 0.3
    held = binwise._with_prior(sums, away, variance)
    np.testing.assert_allclose(held.value, sums[:, 0] + away**2 / 0.6)
    np.testing.assert_allclose(held.gradient[:, 0], sums[:, 1] + away / 0.3)
    np.testing.assert_allclose(held.hessian[:, 0, 0], sums[:, 2] + sums[:, 1] + 1 / 0.3)
    np.testing.assert_allclose(binwise._without_prior(held, away, variance), sums)


def test_sums_of_bins_have_derivatives_in_the_logarithm():
    """The loss and its slope; the Fisher curvature is the second derivative less the slope."""
    rng = np.random.default_rng(3)
    block = Block(rng.normal(size=(60, 3)) * 2, rng.integers(0, 3, 60), rng.choice([0.5, 2.0], 60), 3)
    edges = (0.5, 1.5)
    problem = binwise._BinProblem(in_memory(block), edges, 0.2)
    away = np.array([0.1, -0.3, 0.4])
    place = np.searchsorted(edges, binwise.top_log_odds(block.logits), side="right")

    def losses(at):
        logs = log_softmax(np.exp(0.2 + at[place])[:, None] * block.logits, axis=1)
        return np.bincount(place, -block.weight_array * logs[np.arange(60), block.labels], 3)

    found, step = problem.sums(away), 1e-4
    np.testing.assert_allclose(found[:, 0], losses(away))
    slope = (losses(away + step) - losses(away - step)) / (2 * step)
    np.testing.assert_allclose(found[:, 1], slope, atol=1e-5)
    bend = (losses(away + step) - 2 * losses(away) + losses(away - step)) / step**2
    np.testing.assert_allclose(found[:, 2], bend - slope, atol=1e-3)


def test_the_variance_between_bins_is_that_of_greatest_likelihood():
    rng = np.random.default_rng(4)
    for scale in (0.0, 0.5, 2.0):
        curvature, away = rng.uniform(5, 200, 8), np.zeros(8)
        slope = curvature * scale * rng.normal(size=8)
        found = binwise._between_variance(away, np.column_stack([np.zeros(8), slope, curvature]))
        free = -np.clip(slope / curvature, -binwise._LARGEST_STEP, binwise._LARGEST_STEP)
        grid = np.linspace(0, np.sqrt(binwise._WIDEST), 20_001) ** 2
        total = grid[:, None] + 1 / curvature
        best = grid[(np.log(total) + free**2 / total).sum(axis=1).argmin()]
        assert found == pytest.approx(best, rel=0.02, abs=1e-4)
    blind = np.column_stack([np.zeros(3), np.ones(3), np.zeros(3)])
    assert binwise._between_variance(np.zeros(3), blind) == 0.0


def test_a_known_temperature_is_judged_as_a_found_one():
    rng = np.random.default_rng(5)
    block = Block(rng.normal(size=(50, 3)) * 3, rng.integers(0, 3, 50), rng.choice([0.5, 2.0], 50), 3)
    data, rows = in_memory(block), np.arange(50)
    found = temperature.given_temperature(data, 2.5)
    losses = [
        np.average(-log_softmax(block.logits * beta, axis=1)[rows, block.labels], weights=block.weight_array)
        for beta in (1.0, 0.4)
    ]
    assert (found.beta, found.before, found.after) == pytest.approx((0.4, *losses))


def test_inducing_points_are_even_on_a_logarithmic_scale():
    points = gaussian_process._inducing_points(2.0, 30.0, 7)
    assert points[0] == 0
    assert points[-1] == pytest.approx(30.0)
    np.testing.assert_allclose(np.diff(np.log1p(points / 0.04), n=2), 0, atol=1e-12)
    assert gaussian_process._inducing_points(2.0, 0.1, 5)[-1] == pytest.approx(2.0)
    assert gaussian_process._inducing_points(2.0, 1e9, 5)[-1] == pytest.approx(2e6)


def test_curves_of_a_process_have_its_covariance_and_run_on_beside_the_identity():
    knots, unit, variance, length = np.array([0.0, 0.5, 2.0, 7.0, 9.0]), 1.5, 0.7, 2.0
    found = gaussian_process._family(knots, unit, 0.8, variance, length)
    t = knots[:-1]
    r = np.sqrt(5) * np.abs(np.log1p(t / unit)[:, None] - np.log1p(t / unit)) / length
    covariance = variance * (np.outer(t, t) + (1 + r + r * r / 3) * np.exp(-r))
    np.testing.assert_allclose(found.basis[:4] @ found.basis[:4].T, covariance, atol=1e-6)
    np.testing.assert_allclose(found.basis[4], found.basis[3])
    np.testing.assert_allclose(found.values(np.zeros(5)), -knots[None])
    np.testing.assert_allclose(found.values(found.start)[0, :4], -0.8 * t)  # the shared temperature


@pytest.mark.parametrize(
    ("middle", "start"), [(1.0, 1.0), (20.0, 1.0), (0.05, 1.0), (1500.0, 50.0), (1e-3, 0.03), (1e-9, 3e-8)]
)
def test_a_search_begins_where_scores_make_sense(middle, start):
    """At β = 1, or within a factor of thirty of one over the scores' own scale."""
    assert temperature._sensible_start((middle / 7.0, middle * 7.0)) == pytest.approx(start)
