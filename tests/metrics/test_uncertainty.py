from functools import partial

import numpy as np
import pytest

from calibrant import _core
from calibrant.cells.pairs import Pairs
from calibrant.errors import InvalidInput
from calibrant.metrics import (
    accuracy,
    ace,
    bootstrap,
    brier,
    calibration_error,
    calibration_test,
    canonical_error,
    cwece,
    ece,
    ece_crossfit,
    ece_debiased,
    ece_kde,
    ece_sweep,
    frequency_interval,
    ks_error,
    mce,
    measure,
    nll,
    sharpness,
    skce,
    smece,
    top_k_accuracy,
)
from calibrant.metrics.inference.figures import _of_quantile
from calibrant.metrics.inference.resampling import resamples_of
from calibrant.metrics.inference.uncertainty import from_resamples
from calibrant.simulation import Beta, power_scenario, scenarios


def twin(group, outcomes, excess, weights, rows, seed, m):
    """Splitmix64 and prefix sums, in plain Python."""
    n, state, mask = len(group), int(seed), 2**64 - 1
    counts = np.zeros(n)
    draws = []
    while len(draws) < n:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        draws += (
            [((z & 0xFFFFFFFF) * n) >> 32, ((z >> 32) * n) >> 32] if n - len(draws) > 1 else [((z >> 32) * n) >> 32]
        )
    np.add.at(counts, draws, 1)
    w = counts if weights is None else counts * weights
    sums = [np.r_[0, np.cumsum(np.bincount(group, w * v, m))] for v in (np.ones(n), outcomes, excess)]
    return *sums, w @ rows


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 6, 41])
def test_resample_kernel_equals_its_twin(rng, n, weighted):
    group = np.sort(rng.integers(0, 5, n))
    _, group = np.unique(group, return_inverse=True)
    m = group.max() + 1
    outcomes, excess, rows = rng.random(n), rng.random(n), rng.random((n, 2))
    weights = rng.random(n) if weighted else None
    seeds = rng.integers(0, 2**64, 3, dtype=np.uint64)
    mass, events, gaps, sums = np.empty((3, m + 1)), np.empty((3, m + 1)), np.empty((3, m + 1)), np.empty((3, 2))
    _core.resample_sums(group, outcomes, excess, weights, rows, seeds, 2, mass, events, gaps, sums)
    for r in range(3):
        expected = twin(group, outcomes, excess, weights, rows, seeds[r], m)
        for found, plain in zip((mass[r], events[r], gaps[r], sums[r]), expected, strict=True):
            assert found == pytest.approx(plain, abs=1e-12)


def test_resamples_do_not_depend_on_threads(rng):
    import calibrant

    y, p = scenarios["densenet40_c10"].sample(300, random_state=1)
    found = []
    for threads in (1, 2):
        calibrant.set_threads(threads)
        found.append(bootstrap(ece, y, p, resamples=50))
    calibrant.set_threads(None)
    assert found[0] == found[1]


@pytest.mark.parametrize("metric", [ece, ece_sweep, ks_error])
def test_resampled_values_are_the_metric_of_the_resample(rng, metric):
    p = np.round(rng.random(80), 2)
    y = (rng.random(80) < p).astype(int)
    fast = bootstrap(metric, y, p, resamples=400, random_state=1)
    plain = bootstrap(lambda *a, **k: metric(*a, **k), y, p, resamples=400, random_state=2)
    assert fast.estimate == plain.estimate
    assert fast.bias == pytest.approx(plain.bias, abs=5 * plain.standard_error / 20)
    assert fast.standard_error == pytest.approx(plain.standard_error, rel=0.25)


def test_weighted_rows_carry_their_weights(rng):
    p = rng.random(60)
    y, w = (rng.random(60) < p).astype(int), rng.integers(0, 3, 60)
    pairs = Pairs(p, y.astype(float), w.astype(float))
    for many in resamples_of(pairs, 20, rng):
        assert (many.mass[:, -1] <= 2 * 60).all()
        assert many.mass.dtype == np.int64
    assert bootstrap(ece, y, p, sample_weight=w, resamples=50).estimate == pytest.approx(ece(y, p, sample_weight=w))


@pytest.mark.parametrize(
    ("metric", "norm", "least"), [(ece, 1, 0.85), (ece_debiased, 2, 0.82), (ece_crossfit, 2, 0.87)]
)
def test_intervals_cover_the_truth(metric, norm, least):
    scenario, inside = scenarios["resnet110_c100"], 0
    for seed in range(100):
        y, p = scenario.sample(500, random_state=seed)
        found = bootstrap(metric, y, p, resamples=200, norm=norm, random_state=seed)
        inside += found.low <= scenario.true_error(norm) <= found.high
    assert inside / 100 > least


@pytest.mark.parametrize("tce", [0.0, 0.03])
@pytest.mark.parametrize("metric", [ece, ece_sweep, ece_debiased, ece_crossfit])
def test_intervals_cover_small_errors_and_none(metric, tce):
    # Plain reflection covers an error of 0 in four cases of ten, and a debiased value of 0 has nothing to be reflected.
    scenario = power_scenario(Beta(2, 0.5), tce)
    truth = scenario.true_error(2 if metric in (ece_debiased, ece_crossfit) else 1)
    found = [bootstrap(metric, *scenario.sample(300, random_state=seed), resamples=60) for seed in range(40)]
    assert np.mean([one.low <= truth <= one.high for one in found]) > 0.8
    assert np.mean([one.high > 0 for one in found]) > 0.9


def test_a_few_rows_know_little():
    for y, p in (([1], [0.8]), ([1], [[0.2, 0.8]])):
        found = bootstrap(ece_crossfit, y, p)
        assert (found.low, found.high) == (0.0, 1.0)
        assert "up to 1.000" in measure(y, p, resamples=20).verdict
    pair, many = (bootstrap(ece_crossfit, [0, 1] * n, [0.3, 0.6] * n) for n in (1, 50))
    assert pair.high - pair.low > many.high - many.low


def test_every_metric_has_an_interval(rng):
    p = rng.dirichlet(np.ones(3), 120)
    y, w = np.array([rng.choice(3, p=row) for row in p]), rng.random(120)
    errors = (calibration_error, ece, mce, ace, cwece, ece_crossfit, ece_debiased, ece_kde, ece_sweep, ks_error, smece)
    for metric in (*errors, accuracy, top_k_accuracy, brier, nll, canonical_error):
        for weights in (None, w):
            found = bootstrap(metric, y, p, sample_weight=weights, resamples=20)
            assert 0 <= found.low <= found.high
            assert found.estimate == pytest.approx(metric(y, p, sample_weight=weights))
            assert found.high <= 1 or metric in (brier, nll, canonical_error)
    assert bootstrap(sharpness, y, p, resamples=20).estimate == pytest.approx(sharpness(p))
    for metric in (calibration_error, ece_crossfit, ece_debiased):
        found = bootstrap(metric, y, p, view=1, resamples=20)
        assert found.estimate == pytest.approx(metric(y, p, view=1))


@pytest.mark.parametrize("metric", [cwece, ece_crossfit, ece_debiased, ece])
@pytest.mark.parametrize("options", [{"view": "class_wise"}, {"view": "class_wise", "threshold": "1/K"}, {"view": 2}])
def test_views_of_marginals_have_intervals(rng, metric, options):
    p = np.clip(1.2 * rng.dirichlet(np.ones(3), 90), 0, 1)
    y = rng.integers(0, 3, 90)
    found = bootstrap(metric, y, p, resamples=20, marginals=True, **options)
    assert found.estimate == pytest.approx(metric(y, p, marginals=True, **options))
    assert found.low <= found.estimate
    assert 0 < found.high <= 1
    assert bootstrap(accuracy, y, p, marginals=True, resamples=20).estimate == accuracy(y, p, marginals=True)
    edges = bootstrap(ece, y, p, marginals=True, edges=np.array([0.3, 0.6]), resamples=20)
    assert edges.estimate == pytest.approx(ece(y, p, marginals=True, edges=[0.3, 0.6]))


def test_what_can_be_negative_is_not_cut_at_zero(rng):
    p = rng.dirichlet(np.ones(3), 100)
    y = np.array([rng.choice(3, p=row) for row in p])
    negative = bootstrap(lambda *a, **k: -brier(*a, **k), y, p, resamples=50)
    assert negative.low < negative.estimate < negative.high < 0
    covered = 0
    for seed in range(20):
        y = np.array([np.random.default_rng([seed, i]).choice(3, p=row) for i, row in enumerate(p)])
        found = bootstrap(skce, y, p, resamples=60, random_state=seed)
        covered += found.low <= 0 <= found.high
    assert covered >= 16


@pytest.mark.parametrize("resamples", [1, 0, 50.0, "many", True])
def test_bad_numbers_of_resamples_are_refused(resamples):
    for call in (partial(bootstrap, ece), calibration_test, measure):
        with pytest.raises(InvalidInput, match="resamples"):
            call([0, 1], [0.2, 0.7], resamples=resamples)
    with pytest.raises(InvalidInput, match="bins"):
        measure([0, 1], [0.2, 0.7], bins=0)


@pytest.mark.parametrize("method", ["wilson", "clopper_pearson"])
def test_frequency_intervals_cover(method, rng):
    for truth in (0.02, 0.3, 0.9):
        events = rng.binomial(40, truth, 4000)
        low, high = frequency_interval(events, np.full(4000, 40), method=method)
        covered = ((low <= truth) & (truth <= high)).mean()
        assert covered > (0.92 if method == "wilson" else 0.945)


def test_frequency_intervals_by_hand():
    assert np.array(frequency_interval([0, 10], [10, 10], method="clopper_pearson")) == pytest.approx(
        np.array([[0, 0.69150], [0.30850, 1]]), abs=1e-4
    )
    low, high = frequency_interval([0], [0])
    assert (low[0], high[0]) == (0, 1)


@pytest.mark.parametrize("bad", [{"confidence": 1.0}, {"resamples": 1}])
def test_bad_levels_are_refused(bad):
    with pytest.raises(InvalidInput):
        bootstrap(ece, [0, 1], [0.2, 0.9], **bad)
    with pytest.raises(InvalidInput):
        frequency_interval([1], [2], method="wald")


def test_the_bias_does_not_hang_on_a_last_bit():
    """What values were resampled from may be the estimate but for rounding, as where a curve is summed in groups."""
    values = np.random.default_rng(0).normal(0.2, 0.02, 200)
    found = [from_resamples(0.18, values, 0.9, centre=c, power=2).bias for c in (0.18, np.nextafter(0.18, 1))]
    assert found == pytest.approx([values.mean() - 0.18] * 2)
    assert from_resamples(0.18, values, 0.9, centre=0.18, unbiased=True).bias == 0.0


@pytest.mark.parametrize("wrong", [0, 2])
def test_sure_scores_of_one_event_say_no_more_than_their_few_errors_tell(wrong):
    """Both outcomes are frequent; what is rare is a row against its score, and none or two may have been seen."""
    p = np.tile([0.0, 1.0], 50)
    y = (p > 0.5).astype(int)
    y[:wrong] = 1 - y[:wrong]
    limit = frequency_interval([wrong], [100], method="clopper_pearson")[1][0]
    told = measure(y, p, resamples=100)
    for name in ("ece", "ece_sweep", "smece"):
        assert told.metrics[name].high == pytest.approx(limit)
    assert told.metrics["ece_crossfit"].high == pytest.approx(np.sqrt(limit))
    assert told.metrics["brier"].low is None
    assert f"only {wrong} of 100 rows went against their scores" in told.metrics["brier"].note
    both = measure(y, np.column_stack([1 - p, p]), resamples=100)  # as two columns have it
    assert both.metrics["ece"].high == pytest.approx(told.metrics["ece"].high)


def test_errors_of_sure_scores_are_covered():
    rng, covered = np.random.default_rng(0), []
    for _ in range(40):
        p = np.where(rng.random(60) < 0.5, 0.001, 0.999)
        y = (rng.random(60) < np.where(p > 0.5, 0.98, 0.02)).astype(int)
        found = measure(y, p, resamples=60).metrics["ece"]
        covered.append(found.low <= 0.019 <= found.high)
    assert np.mean(covered) > 0.9  # 0.6 before rows against their scores were counted


# Laws that smooth and rising curves cannot follow: a step, a wave of two periods, and scores that are upside down.
CROOKED = {
    "step": lambda p: np.where(p < 0.5, 0.25, 0.75),
    "wave": lambda p: p + 0.12 * np.sin(4 * np.pi * p),
    "upside down": lambda p: 1 - p,
}


@pytest.mark.parametrize("law", sorted(CROOKED))
def test_distances_of_any_shape_are_covered(law):
    """By the smooth curve E50 of the step was covered in half, and the upside-down cross-fitted error in none."""
    rng, hits = np.random.default_rng(0), dict.fromkeys(("ici", "e50", "e90", "ece_crossfit", "ece_sweep"), 0)
    every = np.linspace(0.01, 0.99, 10_000)
    gaps = np.abs(CROOKED[law](every) - every)
    mean, root = gaps.mean(), np.sqrt((gaps**2).mean())
    truth = dict(zip(hits, (mean, np.median(gaps), np.quantile(gaps, 0.9), root, mean), strict=True))
    for _ in range(20):
        p = rng.uniform(0.01, 0.99, 500)
        y = (rng.random(500) < CROOKED[law](p)).astype(int)
        for name in hits:
            found = bootstrap(name, y, p, resamples=39)
            hits[name] += found.low <= truth[name] <= found.high
    assert min(hits.values()) >= 17  # 19 expected, with a deviation of 1


def test_quantiles_of_the_gap_follow_from_its_moments(rng):
    """A tenth of the rows with gaps of g, and others without, have E90 = g = M/√.1, which is the bound."""
    low, high = _of_quantile(0.06, 0.1, 0.5).values()
    assert (low, high) == (0.0, pytest.approx(0.1 * np.sqrt(2)))
    assert _of_quantile(0.3, 0.31, 0.1)["low"] == pytest.approx(0.3 - 0.31 * np.sqrt(0.1))
    assert _of_quantile(0.3, 0.6, 0.1)["high"] == 1
    for gaps in (rng.random(200) ** 4, np.repeat([0.5, 0.0], [20, 180]), np.full(200, 0.2)):
        for share in (0.1, 0.5):
            ends = _of_quantile(gaps.mean(), np.sqrt((gaps**2).mean()), share)
            assert ends["low"] <= np.sort(gaps)[-int(200 * share)] <= ends["high"] + 1e-12
