"""Evidence is what it says: exact likelihood ratios, fair bets, bounds that hold."""

import itertools
import json
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, logit

from calibrant.monitoring import Monitor
from calibrant.monitoring.alternatives import OFFSETS, Alternatives
from calibrant.monitoring.changes import Changes, conformal_ranks
from calibrant.monitoring.process import FROM_THE_START, LIFETIME, RUN_LENGTH, advance, empty, join, log_evidence
from calibrant.monitoring.rows import Rows
from calibrant.monitoring.sequence import closed_form_log_e, gap_bound, mixing, offset_ends, sub_gaussian_variance
from calibrant.monitoring.sums import sums_of


@pytest.fixture(scope="module")
def oracle(shared_data):
    found = json.loads((shared_data / "oracle-2" / "monitor.json").read_text())
    return found, np.load(shared_data / "oracle-2" / "monitor_soccer.npz")


def test_log_ratios_are_those_of_the_moved_probability():
    p, y = np.array([0.01, 0.3, 0.9]), np.array([1.0, 0.0, 1.0])
    told = Alternatives((-0.5, 1.0), (0.4,), (-3.0, 0.0))
    x = logit(p)
    moved = [expit(x - 0.5), expit(x + 1.0), expit(x + 0.4 * (x + 3)), expit(x + 0.4 * x)]
    wanted = np.array([np.log(np.where(y == 1, q / p, (1 - q) / (1 - p))) for q in moved]).T
    np.testing.assert_allclose(told.log_ratios(p, y), wanted, rtol=1e-12, atol=1e-14)


def test_extreme_probabilities_give_finite_evidence():
    p = np.array([0.0, 1.0, 1e-300, 1 - 1e-16, 5e-324])
    for y in (np.zeros(5), np.ones(5)):
        assert np.isfinite(Alternatives().log_ratios(p, y)).all()


@pytest.mark.parametrize("starts", [LIFETIME, FROM_THE_START])
def test_the_bet_is_fair(starts):
    """Over all outcomes of five rows in three batches, the mean of E under the null is exactly 1."""
    p, told = np.array([0.02, 0.4, 0.7, 0.11, 0.5]), Alternatives()
    whole = 0.0
    for outcome in itertools.product([0.0, 1.0], repeat=5):
        y, money = np.array(outcome), empty(starts, len(told))
        for rows in (slice(0, 2), slice(2, 3), slice(3, 5)):
            money = advance(*money, starts, told.log_ratios(p[rows], y[rows]).sum(axis=0))
        whole += np.prod(np.where(y == 1, p, 1 - p)) * np.exp(log_evidence(*money, starts))
    assert whole == pytest.approx(1.0, abs=1e-12)


def test_an_e_detector_gains_one_unit_a_batch():
    p, told = np.array([0.3, 0.6, 0.1]), Alternatives()
    whole = 0.0
    for outcome in itertools.product([0.0, 1.0], repeat=3):
        y, money = np.array(outcome), empty(RUN_LENGTH, len(told))
        for row in range(3):
            money = advance(*money, RUN_LENGTH, told.log_ratios(p[row : row + 1], y[row : row + 1])[0])
        whole += np.prod(np.where(y == 1, p, 1 - p)) * np.exp(log_evidence(*money, RUN_LENGTH))
    assert whole == pytest.approx(3.0, abs=1e-12)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 2**32 - 1))
def test_joining_is_one_pass(a, b, seed):
    steps = np.random.default_rng(seed).normal(size=(a + b, 4))
    for starts in (LIFETIME, RUN_LENGTH):
        one, two, both = empty(starts, 4), empty(starts, 4), empty(starts, 4)
        for k, step in enumerate(steps):
            both = advance(*both, starts, step)
            if k < a:
                one = advance(*one, starts, step)
            else:
                two = advance(*two, starts, step)
        for got, wanted in zip(join(one, two, steps[a:].sum(axis=0)), both, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)


def test_the_grid_without_restarts_agrees_with_the_oracle(oracle):
    found, data = oracle
    told = Alternatives(slopes=())
    assert sorted(told.offsets) == found["offset_grid18"]["grid"]
    for name in ("p_stable", "p_drift"):
        sums = np.cumsum(told.log_ratios(data[name], data["y"].astype(float)), axis=0)
        log_e = np.logaddexp.reduce(sums, axis=1) - np.log(18)
        wanted = found["offset_grid18"]["results"][f"{name}_no_restart"]
        assert log_e[-1] == pytest.approx(wanted["logE_end"], abs=1e-9)
        first = np.flatnonzero(log_e >= np.log(20))
        assert (first[0] + 1 if len(first) else -1) == wanted["first_alarm_row_1based"]


def test_the_closed_form_agrees_with_the_oracle(oracle):
    found, data = oracle
    for name in ("stable", "drift"):
        whole = sums_of(data[f"p_{name}"], data["y"], None, Alternatives())
        wanted = found["closed_form_mixture"][name]
        assert whole.proxy == pytest.approx(wanted["sums_at_6000"]["V_kearns_saul"], abs=1e-8)
        assert whole.variance == pytest.approx(wanted["sums_at_6000"]["V_bernoulli"], abs=1e-8)
        assert whole.observed - whole.expected == pytest.approx(wanted["sums_at_6000"]["S"], abs=1e-8)
        for rho in (10.0, 50.0, 250.0):
            got = closed_form_log_e(whole.observed - whole.expected, whole.proxy, rho)
            assert got == pytest.approx(wanted[f"rho_{rho}"]["logE_at"]["6000"], abs=1e-8)


def test_kearns_and_saul_bound_the_moments():
    p = np.array([0.001, 0.2, 0.5, 0.5 + 1e-9, 0.97])
    v = sub_gaussian_variance(p)
    assert v[2] == v[3] == 0.25
    for s in np.linspace(-8, 8, 41):
        assert (np.log(1 - p + p * np.exp(s)) - s * p <= s**2 * v / 2 + 1e-12).all()
    np.testing.assert_array_equal(sub_gaussian_variance(np.array([0.0, 1.0])), 0)


@pytest.mark.parametrize("squares", [0.0, 0.4, 30.0, 5000.0])
def test_the_bound_solves_its_mixture(squares):
    """The mixture over λ of exp(λs - ψ(λ)v), integrated numerically, reaches 2/α at the bound."""
    alpha = 0.05
    s, rho = gap_bound(squares, alpha), mixing(alpha / 2)
    density = lambda u: u ** (rho - 1) * np.exp(-rho * u)  # noqa: E731
    peak = (squares + rho) / (s + squares + rho)
    within = {"points": [peak], "limit": 500, "epsabs": 0}
    norm = quad(density, 0, 1, **within)[0]
    tilt = lambda u: density(u) * np.exp((1 - u) * s + squares * (np.log(u) + 1 - u) - np.log(2 / alpha))  # noqa: E731
    assert quad(tilt, 0, 1, **within)[0] / norm == pytest.approx(1.0, rel=1e-6)


def test_the_bound_holds_at_all_times_whatever_the_truth():
    """400 streams of 1,500 rows with wrong and changing probabilities: at most 5 % ever leave the bound."""
    rng, left = np.random.default_rng(3), 0
    for _ in range(400):
        p = rng.beta(1, 8, 1500)
        q = np.clip(p + np.linspace(0, 0.2, 1500), 0, 1)
        y = rng.random(1500) < q
        drift, squares = np.cumsum(y - q), np.cumsum((y - p) ** 2)
        places = np.arange(29, 1500, 30)
        left += any(abs(drift[k]) > gap_bound(float(squares[k]), 0.05) for k in places)
    assert left <= 30  # 20 expected at most; 30 has a chance below 2 %


def test_weights_between_nothing_and_one_keep_the_bet_fair():
    p, told = np.array([0.2, 0.6]), Alternatives((0.5,), ())
    for w in (np.array([0.3, 1.0]), np.array([0.0, 0.0])):
        mean = sum(
            np.prod(np.where(np.array(y) == 1, p, 1 - p)) * np.exp(sums_of(p, np.array(y), w, told).log_ratios[0])
            for y in itertools.product([0.0, 1.0], repeat=2)
        )
        assert mean <= 1 + 1e-12
    assert mean == pytest.approx(1.0)  # rows of weight 0 are no evidence


def test_counts_are_rows_repeated():
    p, y, told = np.array([0.2, 0.6]), np.array([1.0, 0.0]), Alternatives()
    counted = sums_of(p, y, np.array([3.0, 2.0]), told, counts=True)
    repeated = sums_of(np.repeat(p, [3, 2]), np.repeat(y, [3, 2]), None, told)
    np.testing.assert_allclose(counted.log_ratios, repeated.log_ratios)
    assert astuple(counted)[:-1] == pytest.approx(astuple(repeated)[:-1])


def test_conformal_ranks_are_uniform_and_do_not_depend_on_batches():
    rng = np.random.default_rng(5)
    u, draws = rng.beta(2, 5, 4000), rng.random(4000)
    whole, counts = conformal_ranks(u, np.zeros(100), draws)
    first, after = conformal_ranks(u[:1234], np.zeros(100), draws[:1234])
    rest, last = conformal_ranks(u[1234:], after, draws[1234:])
    np.testing.assert_array_equal(np.r_[first, rest], whole)
    np.testing.assert_array_equal(last, counts)
    assert np.abs(np.histogram(whole, 10, (0, 1))[0] - 400).max() < 80  # four standard errors


def test_a_constant_error_is_no_change():
    rng, state = np.random.default_rng(1), Changes.new(0)
    highest = -np.inf
    for number in range(60):
        p = rng.beta(2, 3, 100)
        labels = (rng.random(100) < p**2).astype(np.int64)
        state.add(Rows(p, labels, None, None, np.arange(2)), number + 1)
        highest = max(highest, state.log_e)
    assert highest < np.log(20)


def log_ratio(offset, p, y):
    return float((offset * y - np.log1p(p * np.expm1(offset))).sum())


@given(st.integers(0, 10_000), st.sampled_from([-1.4, -0.3, 0.0, 0.12, 0.7]), st.sampled_from([3, 40, 600]))
def test_the_sequence_of_the_offset_holds_every_offset_that_the_bets_have_not_refuted(seed, truth, n):
    """Computed exactly on a fine grid, no kept offset lies outside, and little that is refuted lies inside."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 3, n).clip(1e-3, 0.999)
    y = rng.random(n) < expit(logit(p) + truth)
    logs = np.array([log_ratio(d, p, y) for d in OFFSETS])
    low, high = offset_ends(np.array(OFFSETS), logs, 0.05)
    mean = np.logaddexp.reduce(logs) - np.log(len(logs))
    grid = np.linspace(-3, 3, 241)
    kept = grid[[mean - log_ratio(d, p, y) < np.log(20) for d in grid]]
    assert len(kept) == 0 or (low <= kept.min() + 1e-9 and high >= kept.max() - 1e-9)
    if len(kept) and kept.min() > -0.75:
        assert low >= kept.min() - 0.25  # the steps of the offsets there


def test_the_offset_that_holds_all_along_is_never_left_more_often_than_promised():
    left, streams = 0, 300
    for seed in range(streams):
        rng = np.random.default_rng([7, seed])
        monitor = Monitor(0.1)
        for _ in range(30):
            p = rng.beta(2, 4, 40)
            one = monitor.update(rng.random(40) < expit(logit(p) + 0.2), p).findings().all_rows
            low, high = one.offset_low, one.offset_high
            if (low is not None and low > 0.2) or (high is not None and high < 0.2):
                left += 1
                break
    assert left <= 0.1 * streams + 3 * np.sqrt(0.09 * streams)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("offsets", [[0.5, 0.5, -0.5], [0.0, 1.0, -1.0], [1e-300, 1.0, -1.0]])
@pytest.mark.parametrize("height", [1.0, 1e300])
def test_equal_offsets_and_enormous_ratios_of_a_forged_state_end_in_numbers(offsets, height):
    low, high = offset_ends(np.array(offsets), np.array([1.0, 0.5, -1.0]) * height, 0.05)
    assert not np.isnan([low, high]).any()
