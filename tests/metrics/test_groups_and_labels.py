"""Groups, clusters, several labels a row, and verbal confidences."""

import json

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant
from calibrant import metrics
from calibrant.cells.pairs import Pairs
from calibrant.errors import InvalidInput
from calibrant.metrics.inference.group_test import group_findings, groups_differ
from calibrant.metrics.measuring import Measuring


def drawn(seed, n=1500, shift=0.0):
    g = np.random.default_rng(seed)
    p, place = g.beta(1.5, 3, n), g.integers(0, 5, n)
    y = (g.random(n) < expit(logit(p) + shift * (place == 3))).astype(int)
    return y, p, np.array(["north", "south", "east", "west", "sea"])[place], place


def test_the_worst_group_is_found():
    y, p, groups, _ = drawn(0, 3000, 0.9)
    found = calibrant.measure(y, p, groups=groups, resamples=99)
    assert set(found.groups) == set(groups)
    assert found.group_findings.worst == found.group_findings.largest_gap == "west"
    assert found.group_findings.test.pvalue < 1e-6
    row = next(row for row in found.group_findings.rows if row.name == "west")
    assert row.low > 0
    assert row.pvalue < 0.01
    others = [row for row in found.group_findings.rows if row.name != "west"]
    assert sum(row.low <= 0 <= row.high for row in others) >= 3  # one of five families in twenty misses one
    assert found.groups["west"].metrics["ece"].confidence == pytest.approx(0.99)
    assert "Groups differ" in repr(found)
    assert json.loads(found.to_json())["group_findings"]["worst"] == "west"


def test_groups_that_do_not_differ_are_let_be():
    raised = sum(groups_differ(Pairs(p, y * 1.0), place, 5).pvalue <= 0.05 for y, p, _, place in map(drawn, range(200)))
    assert 3 <= raised <= 19


def test_groups_of_blocks_with_fractional_weights_are_those_of_the_rows():
    """A cell was one row of all its weight, and varied as one: no difference was seen."""
    y, p, groups, _ = drawn(0, 1000, 0.9)
    p, w = np.round(p, 2), np.random.default_rng(1).gamma(2, 1.0, 1000)
    wanted = metrics.measure(y, p, groups=groups, sample_weight=w, resamples=19).group_findings.test
    found = Measuring(resamples=19).update(y, p, groups=groups, sample_weight=w).finalise().group_findings.test
    assert wanted.pvalue < 0.01
    assert (found.statistic, found.pvalue) == pytest.approx((wanted.statistic, wanted.pvalue), rel=1e-6)


def test_a_common_error_is_no_difference():
    raised = 0
    for seed in range(100):
        g = np.random.default_rng(seed)
        p, place = g.beta(1.5, 3, 1500), g.integers(0, 5, 1500)
        y = (g.random(1500) < expit(0.4 + 0.7 * logit(p))).astype(float)
        raised += groups_differ(Pairs(p, y), place, 5).pvalue <= 0.05
    assert raised <= 11


def test_small_groups_are_listed_apart():
    y, p, groups, _ = drawn(1)
    groups = groups.astype(object)
    groups[:4] = "tiny"
    rows = {row.name: row for row in metrics.measure(y, p, groups=groups, resamples=50).group_findings.rows}
    assert rows["tiny"].small
    assert not rows["west"].small
    with pytest.raises(InvalidInput, match="groups"):
        metrics.measure(y, p, groups=groups[:5])
    with pytest.raises(InvalidInput, match="without a name"):
        metrics.measure(y, p, groups=[None, *groups[1:]])


def test_labels_need_not_exclude_each_other(rng):
    p = rng.random((400, 4))
    y = (rng.random((400, 4)) < p).astype(float)
    y[rng.random((400, 4)) < 0.2] = np.nan
    y[:, 3] = 0.0
    found = metrics.measure(y, p, profile="multilabel", resamples=50, classes=["a", "b", "c", "d"])
    assert (found.n, found.n_classes) == (400, 4)
    assert found.labels.left_out == ("d",)
    assert found.labels.missing == int(np.isnan(y).sum())
    for place, name in enumerate("abc"):
        known = ~np.isnan(y[:, place])
        one = found.labels.labels[name]
        assert one["brier"].estimate == pytest.approx(metrics.brier(y[known, place], p[known, place]))
        assert one["auroc"].estimate == pytest.approx(metrics.auroc(y[known, place], p[known, place]))
    macro = np.mean([found.labels.labels[name]["brier"].estimate for name in "abc"])
    assert found.labels.macro["brier"].estimate == pytest.approx(macro)
    known = ~np.isnan(y)
    assert found.metrics["brier"].estimate == pytest.approx(metrics.brier(y[known], p[known]))
    assert "argmax" not in found.to_json()
    assert "4 labels" in repr(found)


def test_counts_of_labels_are_calibrated(rng):
    p = rng.random((500, 6)) * rng.random((500, 1))
    y = (rng.random((500, 6)) < p).astype(float)
    found = metrics.measure(y, p, profile="multilabel", resamples=50).labels
    assert found.count_ratio.covers(1.0)
    assert found.count_slope.estimate == pytest.approx(1.0, abs=4 * found.count_slope.standard_error)
    half = metrics.measure(y, p / 2, profile="multilabel", resamples=50).labels
    assert half.count_ratio.estimate == pytest.approx(2 * found.count_ratio.estimate)
    assert half.count_slope.estimate == pytest.approx(2 * found.count_slope.estimate)


def test_bad_labels_are_refused():
    with pytest.raises(InvalidInput, match="one shape"):
        metrics.measure([0, 1], [[0.1, 0.2], [0.3, 0.4]], profile="multilabel")
    with pytest.raises(InvalidInput, match="no outcome"):
        metrics.measure([[0, 2]], [[0.1, 0.2]], profile="multilabel")
    with pytest.raises(InvalidInput, match="no probability"):
        metrics.measure([[0, 1]], [[0.1, 1.2]], profile="multilabel")
    with pytest.raises(InvalidInput, match="no such profile"):
        metrics.measure([0, 1], [0.1, 0.2], profile="medical")


def test_verbal_confidences_by_subject(rng):
    """(confidence, correct) with heavy ties, ten questions a subject."""
    subject = np.repeat(np.arange(80), 10)
    confidence = rng.choice(np.arange(11) / 10, 800, p=[0.02] * 5 + [0.05, 0.1, 0.15, 0.2, 0.25, 0.15])
    correct = (rng.random(800) < 0.75 * confidence + 0.1).astype(int)
    found = metrics.measure(correct, confidence, clusters=subject, profile="forecast", resamples=99)
    order = rng.permutation(800)
    again = metrics.measure(
        correct[order], confidence[order], clusters=subject[order], profile="forecast", resamples=99
    )
    for name in found.metrics:
        assert found.metrics[name].estimate == pytest.approx(again.metrics[name].estimate, abs=0.02), name
    assert found.shape != "none"
    assert found.metrics["over_confidence"].estimate > found.metrics["under_confidence"].estimate


@pytest.mark.parametrize("profile", ["risk", "forecast"])
def test_profiles_have_their_figures(rng, profile):
    p = rng.beta(1, 8, 800)
    y = (rng.random(800) < p).astype(int)
    found = metrics.measure(y, p, profile=profile, resamples=60)
    assert tuple(found.metrics) == metrics.table.PROFILES[profile]
    assert found.profile == profile
    assert (found.smooth is not None) == (profile == "risk")
    if profile == "risk":
        assert (found.smooth.low <= found.smooth.frequency).all()
        assert found.smooth.yes.sum() == y.sum()
        assert found.decisions.net_benefit[4] == pytest.approx(metrics.net_benefit(y, p, 0.05))
    assert json.loads(found.to_json())["profile"] == profile


def test_groups_of_clusters_of_rare_events_are_not_called_different():
    hospital, visits, hits = np.repeat(np.arange(12), 50), 4, 0
    patient = np.repeat(np.arange(600), visits)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        common = rng.random(600)[patient]
        p = expit(rng.normal(-3.5, 1.1, 600)[patient] + rng.normal(0, 0.5, len(patient)))
        y = np.where(rng.random(len(patient)) < 0.6, common, rng.random(len(patient))) < p
        pairs = Pairs(p, y.astype(float), clusters=patient)
        hits += groups_differ(pairs, hospital[patient], 12, 99, rng).rejects()
    assert hits <= 3 + 3 * 1.7  # 5 % of 60, and three standard deviations


def test_a_small_group_that_clearly_strays_is_the_worst():
    rng = np.random.default_rng(1)
    p = np.r_[rng.uniform(0.2, 0.8, 400), np.full(30, 0.1)]
    y = np.r_[rng.random(400) < p[:400], np.ones(30, bool)].astype(int)
    found = metrics.measure(y, p, groups=np.repeat(["large", "small"], [400, 30]), resamples=199).group_findings
    assert found.worst == "small"
    assert not any(row.small for row in found.rows)


def test_groups_are_in_the_order_that_people_count(rng):
    p = rng.random(600)
    y = (rng.random(600) < p).astype(int)
    wards = np.tile(["ward 2", "ward 10", "ward 1"], 200)
    found = metrics.measure(y, p, groups=wards, resamples=19)
    assert list(found.groups) == [row.name for row in found.group_findings.rows] == ["ward 1", "ward 2", "ward 10"]
    assert found.groups["ward 10"].n == 200
    assert found.groups["ward 10"].confidence == pytest.approx(p[wards == "ward 10"].mean())
    blocks = Measuring(resamples=19).update(y, p, groups=np.tile([2, 10, 1], 200)).finalise()
    assert list(blocks.groups) == ["1", "2", "10"]


def test_intervals_of_groups_in_clusters_hold_where_no_event_was_seen():
    """40 clusters of five, 5 % events, four groups: by its residuals alone a group without events was sure."""
    inside = []
    for seed in range(40):
        g = np.random.default_rng(seed)
        p, clusters = g.beta(0.5, 9.5, 200), np.arange(200) // 5
        y = (g.random(40)[clusters] < p).astype(int)
        pairs = Pairs(p, y.astype(float), clusters=clusters)
        found = group_findings(pairs, clusters % 4, list("abcd"), 0.95, 19, g)
        inside.append(all(row.low <= 0 <= row.high for row in found.rows))
    assert sum(inside) >= 36  # 95 % of 40 are 38, with a deviation of 1.4


def test_pvalues_of_groups_at_the_floor_are_bounds():
    p = np.full(60, 0.5)
    found = calibrant.measure(np.ones(60, int), p, groups=np.arange(60) % 2, clusters=np.arange(60) // 2, resamples=39)
    row = found.group_findings.rows[0]
    assert row.pvalue == row.floor == pytest.approx(2 / 40)
    assert row.p == "≤ 0.05"


def test_several_events_are_sent_to_their_profile_and_shown_by_label(rng):
    p = rng.beta(1, 4, (300, 3))
    y = (rng.random((300, 3)) < p).astype(float)
    y[:20, 1] = np.nan
    with pytest.raises(InvalidInput, match="multilabel"):
        calibrant.measure(y, p)
    found = calibrant.measure(y, p, profile="multilabel", resamples=39)
    assert "20 outcomes are not known" in repr(found)
    assert repr(found).count("observed_expected") == 4  # of all entries, and of three labels
    ends = [found.labels.labels[name]["ece_crossfit"].high for name in found.labels.labels]
    assert found.labels.macro["ece_crossfit"].high == pytest.approx(np.mean(ends))  # it was 0.016, of 0.03 to 0.05


def test_means_over_labels_have_the_reach_of_their_spread(rng):
    """Quantiles of 50 draws covered 91 to 93 % (300 samples of 300 rows, 3 labels); Student's reach covers 95 %."""
    p = rng.beta(1, 4, (200, 2))
    y = (rng.random((200, 2)) < p).astype(float)
    for found in calibrant.measure(y, p, profile="multilabel", resamples=99).labels.macro.values():
        if found.norm is None:
            assert found.high - found.estimate == pytest.approx(2.0096 * found.standard_error, rel=1e-4)
            assert found.estimate - found.low == pytest.approx(2.0096 * found.standard_error, rel=1e-4)
        else:
            assert found.wide


@pytest.mark.parametrize("clusters", [None, np.arange(30) // 3])
def test_a_group_without_weight_is_not_there(clusters):
    """It was divided by nothing, in words of NumPy; the rows of the other groups are measured as without it."""
    rng = np.random.default_rng(0)
    p = rng.random(30)
    y, w, of = (
        (rng.random(30) < p).astype(int),
        np.r_[2.0, np.ones(27), 0.0, 0.0],
        np.repeat(["a", "b", "c"], [14, 14, 2]),
    )
    found, alone = (
        calibrant.measure(y[:n], p[:n], sample_weight=w[:n], groups=of[:n], resamples=29, clusters=own)
        for n, own in ((30, clusters), (28, None if clusters is None else clusters[:28]))
    )
    assert list(found.groups) == ["a", "b"]
    assert found.group_findings == alone.group_findings
    blocks = Measuring(resamples=29)
    blocks.update(y, p, sample_weight=w, groups=of)
    assert list(blocks.finalise().groups) == ["a", "b"]
