"""What a fit says about itself."""

import warnings

import numpy as np
import pytest
from tests.conftest import overconfident

from calibrant import CalibrationWarning, Identity, Uniform, make
from calibrant.arrays import softmax
from calibrant.cells.counted import Apart
from calibrant.cells.fine import cells_of_scores
from calibrant.fits.judge import (
    Comparison,
    cross_validate,
    estimate,
    judged,
    label_losses,
    mean_losses,
    raw_losses,
    row_losses,
    stated,
    tell,
)
from calibrant.fits.report import FitReport
from calibrant.maps.binary import table
from calibrant.maps.binary.platt import PlattScaling
from calibrant.passes import Block, in_memory, in_stream


def _report(**more):
    return FitReport(
        **{"iterations": 3, "converged": True, "loss": "nll", "loss_before": 1.0, "loss_after": 0.9, **more}
    )


def _sample(n=40, k=3, weights=None):
    generator = np.random.default_rng(0)
    return Block(generator.normal(size=(n, k)), np.arange(n) % k, weights, k)


def test_row_losses_are_what_they_say():
    sample = _sample()
    p = softmax(sample.logits)
    hot = np.eye(3)[sample.labels]
    np.testing.assert_allclose(row_losses("nll", p, sample.labels), -np.log((p * hot).sum(axis=1)))
    np.testing.assert_allclose(row_losses("brier", p, sample.labels), ((p - hot) ** 2).sum(axis=1))
    assert np.isinf(label_losses(np.array([[1.0, 0.0]]), np.array([1])))[0]


def test_mean_loss_follows_the_weights():
    weights = np.random.default_rng(1).uniform(size=40)
    sample = _sample(weights=weights)
    rows = row_losses("nll", softmax(sample.logits), sample.labels)
    before, after = mean_losses(in_memory(sample), softmax, softmax)
    assert before == after == pytest.approx(weights @ rows / weights.sum())


def test_harm_is_what_exceeds_its_standard_error():
    assert not _report().harms
    assert not _report(held_out_before=1.0, held_out_after=1.01, held_out_error=0.02).harms
    assert _report(held_out_before=1.0, held_out_after=1.03, held_out_error=0.02).harms
    assert _report(held_out_before=1.0, held_out_after=np.inf, held_out_error=np.inf).harms
    assert not _report(held_out_before=np.inf, held_out_after=np.inf, held_out_error=np.inf).harms


def test_held_out_losses_come_from_rows_the_fit_did_not_see():
    sample = _sample()
    seen = []

    def fit(rest):
        seen.append(rest)
        return softmax

    report = cross_validate(_report(), in_memory(sample), fit, softmax)
    assert len(seen) == 5
    assert all(rest.n == 32 for rest in seen)
    assert report.held_out_after == pytest.approx(mean_losses(in_memory(sample), softmax, softmax)[0])
    assert report.held_out_error == 0
    assert cross_validate(_report(), in_memory(_sample(n=9)), fit, softmax).held_out_after is None


def test_held_out_error_is_the_standard_error_of_the_difference():
    generator = np.random.default_rng(2)
    before, after, ones = generator.uniform(size=50), generator.uniform(size=50), np.ones(50)
    report = judged(_report(), Comparison.of(before, after, ones))
    assert report.held_out_error == pytest.approx((after - before).std() / np.sqrt(50))
    assert judged(_report(), Comparison.of(before, np.where(np.arange(50) == 3, np.inf, after), ones)).harms


def test_comparisons_of_parts_add_up_and_forget_rows_of_weight_zero():
    generator = np.random.default_rng(2)
    before, after, weights = generator.uniform(size=(3, 50))
    whole = Comparison.of(before, after, weights)
    parts = Comparison.of(before[:7], after[:7], weights[:7]) + Comparison.of(before[7:], after[7:], weights[7:])
    np.testing.assert_allclose(whole.sums, parts.sums)
    absent = Comparison.of(np.append(before, np.inf), np.append(after, 1.0), np.append(weights, 0.0))
    np.testing.assert_array_equal(whole.sums, absent.sums)


def test_the_verdict_knows_neither_blocks_nor_order():
    z, y = overconfident(600, 4, seed=3)
    block = Block(z, y, None, 4)
    order = np.random.default_rng(0).permutation(600)
    turned = block.take(order)
    cuts = [(0, 1), (1, 1), (1, 250), (250, 600)]
    stream = in_stream(lambda: (turned.take(slice(a, b)) for a, b in cuts), 4, 4, z.dtype)
    reports = []
    for data in (in_memory(block), in_memory(turned), stream):
        fitted = make("isotonic-s")
        reports.append(fitted.fit_data(data, check=True))
    for report in reports[1:]:
        for name in ("held_out_before", "held_out_after", "held_out_error"):
            assert getattr(report, name) == pytest.approx(getattr(reports[0], name), rel=1e-9)


def test_akaikes_estimate_adds_what_the_rows_determine():
    z, y = overconfident(5000, 4, seed=3)
    fitted = make("ts").fit(z, y)
    report = estimate(_report(), in_memory(Block(z, y, None, 4)), softmax, fitted.predict_proba, 7.0)
    assert report.held_out_before == 1.0
    assert report.held_out_after == pytest.approx(0.9 + 7.0 / 5000)
    gains = label_losses(softmax(z), y) - label_losses(fitted.predict_proba(z), y)
    assert report.held_out_error == pytest.approx(gains.std() / np.sqrt(5000), rel=0.1)  # from 1,000 of the rows
    assert report.details["effective_parameters"] == 7.0


def test_folds_that_share_rows_widen_the_error():
    """1 + J n₂/n₁ times the variance of independent rows: 2.25 for five folds, 1.25 for one fold of a fifth."""
    sample, generator = _sample(), np.random.default_rng(3)
    p = generator.dirichlet(np.ones(3), size=40)
    gains = label_losses(softmax(sample.logits), sample.labels) - label_losses(p, sample.labels)
    answers = dict(zip(map(bytes, sample.logits), p, strict=True))
    report = cross_validate(
        _report(), in_memory(sample), lambda rest: lambda z: np.array([answers[row.tobytes()] for row in z]), softmax
    )
    assert report.held_out_before - report.held_out_after == pytest.approx(gains.mean())
    assert report.held_out_error == pytest.approx(1.5 * gains.std() / np.sqrt(40))
    before, ones = gains[:8] * 2, np.ones(8)
    found = Comparison.of(before, before - gains[:8], ones)
    alone, one_fold = (judged(_report(), found, rows) for rows in (np.inf, 32))
    assert one_fold.held_out_error == pytest.approx(np.sqrt(1.25) * alone.held_out_error)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_the_error_covers_what_other_rows_show():
    """Of independent rows it would be too small, with the correction it errs on the safe side."""
    z, y = overconfident(20_000, 10, seed=999, scale=1.2)
    raw = label_losses(softmax(z), y).mean()
    off = []
    for seed in range(40):
        fitted = make("isotonic-s").fit(*overconfident(300, 10, seed=seed, scale=1.2))
        report, gain = fitted.fit_report_, raw - label_losses(fitted.predict_proba(z), y).mean()
        off.append((report.held_out_before - report.held_out_after - gain) / report.held_out_error)
    assert 1 / 1.5 < np.sqrt(np.mean(np.square(off))) < 1


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_held_out_losses_of_rounded_scores_are_those_of_other_rows():
    """Two or three rows of most scores, of either label: they go into one fold together."""
    gaps = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        z, other = (np.stack([np.zeros(n), np.round(rng.normal(size=n) * 2, 1)], axis=1) for n in (300, 20000))
        y, labels = ((s / 1.5 + rng.gumbel(size=s.shape)).argmax(axis=1) for s in (z, other))
        map_ = make("irova").fit(z, y)
        report, p = map_.fit_report_, (softmax(other), map_.predict_proba(other))
        before, after = (row_losses("nll", part, labels).mean() for part in p)
        gaps.append(report.held_out_after - report.held_out_before - (after - before))
    assert abs(np.mean(gaps)) < 0.015  # .032 too high where rows of each label were in a fold of their own


def test_warnings_say_what_a_user_should_know():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tell(_report(), "map")
    for report, message in (
        (_report(converged=False), "map did not converge in 3 iterations; nll went from 1 to 0.9"),
        (_report(messages=("T is at its bound",)), "map: T is at its bound"),
        (_report(held_out_before=1.0, held_out_after=2.0, held_out_error=0.1), "worse than leaving the scores alone"),
        (
            _report(held_out_before=2.0, held_out_after=1.0, held_out_error=0.1, caveat="7 rows are few"),
            r"may be worse .* held-out nll is 1.0000 against 2.0000, but that proves little; 7 rows are few: .*share",
        ),
        (_report(caveat="7 rows are few"), "too few rows for a held-out nll: nothing says that it is better"),
    ):
        with pytest.warns(CalibrationWarning, match=message):
            tell(report, "map")


def test_a_map_that_harms_warns_in_the_callers_line():
    z = np.eye(3)[np.arange(60) % 3] * 5.0
    with pytest.warns(CalibrationWarning, match="Uniform makes its held-out nll worse") as caught:
        Uniform().fit(z, np.arange(60) % 3)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Identity().fit(z, np.arange(60) % 3)


def test_a_gain_within_the_noise_is_told_of_maps_on_one_score():
    report = _report(held_out_before=1.0, held_out_after=0.95, held_out_error=0.04)
    assert report.unproven
    assert not report.harms
    with pytest.warns(CalibrationWarning, match="not clearly better than the raw probabilities"):
        tell(report, "Isotonic", cautious=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tell(report, "TemperatureScaling")
        tell(_report(), "TemperatureScaling")
        tell(_report(held_out_before=1.0, held_out_after=0.9, held_out_error=0.04), "Isotonic", cautious=True)
    assert not _report(held_out_before=float("inf"), held_out_after=0.9, held_out_error=float("inf")).unproven
    assert not _report().unproven
    with pytest.warns(CalibrationWarning, match="too few rows for a held-out nll"):
        tell(_report(), "Isotonic", cautious=True)


def test_a_map_that_loses_on_the_rows_it_was_fitted_on_says_so():
    """`TopLabel` of `BayesianBinning` on a boosted model went from .6180 to .6257 on its own rows, and said nothing."""
    within = {"held_out_before": 1.0, "held_out_after": 1.01, "held_out_error": 0.04}
    with pytest.warns(CalibrationWarning, match=r"Map is not clearly better .* 1\.0100 against 1\.0000"):
        tell(_report(loss_before=1.0, loss_after=1.001, **within), "Map")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tell(_report(loss_before=1.0, loss_after=1.0 + 1e-8, **within), "Map")


@pytest.mark.parametrize(
    ("after", "shown"), [(1.3, "1.3000 against 1.2345"), (1.23450012, "1.2345001 against 1.2345000")]
)
def test_losses_are_told_with_the_digits_that_part_them(after, shown):
    report = _report(held_out_before=1.2345, held_out_after=after, held_out_error=0.0)
    with pytest.warns(CalibrationWarning, match=shown):
        tell(report, "Map")


def _bets(d, w):
    """Slow twin: the money of five gamblers who stake a share on each row, a weight being the row so many times."""
    money = np.ones(5)
    for difference, times in zip(d, w, strict=True):
        for i, stake in enumerate((0.01, 0.03, 0.1, 0.3, 1.0)):
            money[i] *= max(1 - stake * difference, 0.0) ** times
    return min(1.0, 1 / money.mean())


def test_bets_equal_their_slow_twin_however_the_weights_are_scaled():
    rng = np.random.default_rng(2)
    before, after, w = rng.exponential(1, 40) ** 2, rng.exponential(0.5, 40), rng.integers(0, 3, 40).astype(float)
    ones = np.ones(40)
    expected = _bets(after - before, ones)
    assert 1e-6 < expected < 0.5
    assert Comparison.of(before, after, ones).pvalue() == pytest.approx(expected)
    assert Comparison.of(before, after, 7 * ones).pvalue() == pytest.approx(expected)
    parts = Comparison.of(before[:15], after[:15], w[:15]) + Comparison.of(before[15:], after[15:], w[15:])
    assert parts.pvalue() == pytest.approx(_bets(after - before, w * w.sum() / (w @ w)))
    assert Comparison.none().pvalue() == 1.0


def test_bets_prove_a_gain_that_a_few_rows_hold():
    before, after = np.full(140, 0.001), np.full(140, 0.08)
    before[:6] = [30.0, 12.0, 25.0, 8.0, 4.0, 15.0]  # sure and wrong
    found = Comparison.of(before, after, np.ones(140))
    report = judged(_report(), found, 0.8 * 140)
    assert report.held_out_before - report.held_out_after < 1.96 * report.held_out_error
    assert not report.unproven
    assert f"better (p ≤ {report.held_out_pvalue:.2g})" in str(report)


def test_bets_seldom_prove_what_is_not_there():
    rng, proven = np.random.default_rng(0), 0
    for _ in range(300):
        p = rng.beta(0.3, 0.3, 150)
        y = rng.random(150) < p
        q = 1 / (1 + ((1 - p) / p) ** 0.9)  # a little worse than p, which is the truth
        losses = [-np.log(np.maximum(np.where(y, r, 1 - r), 1e-12)) for r in (p, q)]
        proven += Comparison.of(*losses, np.ones(150)).pvalue() < 0.025
    assert proven <= 7  # 2.5 %


def test_a_report_says_of_a_fit_on_a_sample_how_many_rows_it_saw():
    z, y = np.zeros((6, 2)), np.arange(6) % 2
    data, same = in_memory(Block(z, y, None, 2)), in_memory(Block(z, y, None, 2))
    some = in_memory(Block(z[:4], y[:4], None, 2))
    report = FitReport(1, True, "nll", 0.7, 0.6)
    assert stated(report, data, data) is report
    assert stated(report, same, data) is report
    assert stated(report, some, data).messages == (
        "fitted on a sample of 4 of 6 rows, chosen by a hash of their content",
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_raw_losses_keep_their_digits_where_probabilities_are_too_small_for_a_float(dtype):
    gaps = np.array([1.0, 79.0, 81.0, 87.5, 95.0, 103.0, 119.0, 121.0, 800.0])
    logits = np.stack([np.zeros(9), -gaps], axis=1).astype(dtype)
    np.testing.assert_allclose(raw_losses("nll", logits, np.ones(9, int)), np.logaddexp(0, gaps), rtol=1e-6)
    np.testing.assert_allclose(raw_losses("brier", logits, np.ones(9, int)), 2 / (1 + np.exp(-gaps)) ** 2, rtol=1e-6)


def test_rows_of_the_same_losses_are_compared_by_their_sums(rng):
    before, after = rng.exponential(size=6), rng.exponential(size=6)
    before[2], after[3] = np.inf, np.inf
    counts = rng.integers(1, 5, 6)
    w = rng.choice([0.5, 1.0, 2.0], counts.sum())
    place = np.repeat(np.arange(6), counts)
    for finite in (np.arange(6) < 2, np.ones(6, bool)):
        own = finite[place]
        plain = Comparison.of(before[place][own], after[place][own], w[own])
        sums = [np.bincount(place, w**power, 6)[finite] for power in (1, 2)]
        found = Comparison.of_sums(before[finite], after[finite], *sums)
        np.testing.assert_allclose(found.sums, plain.sums, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_a_large_event_is_judged_by_cells_as_by_rows():
    """Losses of the scores and of a map on cells of the fold that was held out, with the squares of its weights."""
    rng = np.random.default_rng(8)
    x, w = rng.integers(-8, 9, 300) / 2, rng.choice([0.5, 1.0, 2.0], 300)
    y = (rng.random(300) < 1 / (1 + np.exp(-0.6 * x))) * 1.0
    held = cells_of_scores(x, y, w)
    squares = np.array([[(w[x == v] ** 2).sum(), (w[x == v] ** 2 * y[x == v]).sum()] for v in held.scores])
    fitted = PlattScaling().fit(x, y.astype(int), w)
    found = table._compared(Apart(held, held, held, squares), fitted, np.float64)
    p = 1 / (1 + np.exp(-x))
    q = fitted.predict_proba(x)[:, 1]
    losses = [-np.log(np.where(y > 0, one, 1 - one)) for one in (p, q)]
    np.testing.assert_allclose(found.sums, Comparison.of(*losses, w).sums, rtol=1e-9)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"held_out_before": 0.5, "held_out_after": 0.4, "held_out_error": 0.01}, " (-0.1000 ± 0.0196)"),
        (
            {"held_out_before": 0.5, "held_out_after": 0.49, "held_out_error": 0.01},
            " (-0.0100 ± 0.0196): not clearly better",
        ),
        (
            {"held_out_before": 0.5, "held_out_after": 0.5098, "held_out_error": 0.01},
            " (+0.0098 ± 0.0196): not clearly better",
        ),
        (
            {"held_out_before": 0.5, "held_out_after": 0.52, "held_out_error": 0.01},
            " (+0.0200 ± 0.0196): worse than without the map",
        ),
        (
            {"held_out_before": 0.5, "held_out_after": 0.49, "held_out_error": 0.01, "held_out_pvalue": 0.002},
            " (-0.0100 ± 0.0196): better (p ≤ 0.002), by how much few rows decide",
        ),
        ({"held_out_before": 0.5, "held_out_after": 0.4, "held_out_error": None}, ""),
        ({"held_out_before": 0.5, "held_out_after": 0.6, "held_out_error": None}, ": worse than without the map"),
        ({"held_out_before": np.inf, "held_out_after": 0.6, "held_out_error": 0.1}, ""),
    ],
)
def test_a_report_says_what_held_out_losses_say(given, words):
    report = FitReport(1, True, "nll", 0.5, 0.4, **given)
    assert report._judgement() == words
    line = str(report).splitlines()[1]
    assert line.endswith(f"on other rows{words}")
    assert line.startswith("log-loss: ∞ before" if given["held_out_before"] == np.inf else "log-loss: 0.5000 before")


def test_a_report_says_how_a_fit_ended():
    for steps, converged, words in (
        (0, True, "found in closed form"),
        (1, True, "converged in 1 step"),
        (2, False, "did not converge in 2 steps"),
    ):
        told = str(FitReport(steps, converged, "brier", 0.5, 0.4)).splitlines()
        assert told[0] == "Brier score: 0.5000 before, 0.4000 after on the rows fitted"
        assert told[1:] == ["too few rows to tell how it does on others", words]
    report = FitReport(3, True, "nll", 0.5, 0.4, at_bound=("a", "b"), messages=("one",), caveat="two")
    assert str(report).splitlines()[-3:] == ["at the edge of its range: a, b", "note: one", "note: two"]


def test_a_row_of_no_weight_says_nothing_however_wrong_it_is():
    """Its loss is infinite, and nothing times that is no number."""
    z, labels = np.array([[0.0, 1.0], [0.0, -np.inf], [2.0, 0.0]]), np.array([1, 1, 0])
    block = Block(z, labels, np.array([1.0, 0.0, 3.0]), 2)
    sure = lambda logits: np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])[: len(logits)]  # noqa: E731
    before, after = mean_losses(in_memory(block), softmax, sure)
    assert before == pytest.approx((np.log1p(np.exp(-1)) + 3 * np.log1p(np.exp(-2))) / 4)
    assert after == pytest.approx((-np.log(0.75) + 3 * np.log(2)) / 4)
