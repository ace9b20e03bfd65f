"""KCal that keeps fewer rows, and KCal where torch cannot be imported."""

import subprocess
import sys

import numpy as np
import pytest

from calibrant import KCal
from calibrant.maps.class_means import class_means
from calibrant.maps.density import spread_of
from calibrant.maps.prototypes import compression_loss, herd, quotas
from calibrant.metrics import nll
from calibrant.testing.embeddings import cloud


def test_quotas_fill_the_capacity_and_leave_no_class_out():
    counts = np.array([900, 90, 9, 1, 0])
    found = quotas(counts.astype(float), counts, 50)
    assert found.sum() == 50
    assert (found[:4] >= 1).all()
    assert found[4] == 0
    assert (quotas(counts.astype(float), counts, 1000) == counts).all()


def test_herding_takes_all_the_weight_and_beats_chance():
    data = cloud(1200, 4, 3)
    rows, shares = herd(data.scores, data.labels, np.ones(1200), 0.8, 60)
    assert shares.sum() == pytest.approx(1200)
    assert np.bincount(data.labels[rows], shares) == pytest.approx(np.bincount(data.labels))
    target = np.exp(-((data.scores[:, None] - data.other[None, :50]) ** 2).sum(-1) / (2 * 0.64)).mean(0)
    chosen = np.exp(-((data.scores[rows][:, None] - data.other[None, :50]) ** 2).sum(-1) / (2 * 0.64))
    error = np.abs(shares @ chosen / shares.sum() - target).mean()
    rng = np.random.default_rng(0)
    by_chance = []
    for _ in range(20):
        some = rng.choice(1200, 60, replace=False)
        kernel = np.exp(-((data.scores[some][:, None] - data.other[None, :50]) ** 2).sum(-1) / (2 * 0.64))
        by_chance.append(np.abs(kernel.mean(0) - target).mean())
    assert error < np.mean(by_chance)


@pytest.mark.parametrize("keep", ["herding", "reservoir"])
def test_capacity_bounds_the_rows_and_tells_the_cost(keep):
    data = cloud(900, 4, 5)
    exact = KCal("identity").fit(data.scores, data.labels)
    assert "compression" not in exact.fit_report_.details
    small = KCal("identity", capacity=150, keep=keep).fit(data.scores[:600], data.labels[:600])
    assert len(small.points_) == len(small.weights_) == len(small.keys_) == 150
    told = small.fit_report_.details["compression"]
    assert (told["rows"], told["kept"]) == (600, 150)
    assert told["nll_kept"] < told["nll_exact"] + 0.3
    small.partial_fit(data.scores[600:], data.labels[600:])
    assert len(small.points_) == 150
    assert small.n_samples_ == 900
    truth = cloud(900, 4, 5, seed=0)
    assert nll(truth.labels, small.predict_proba(truth.scores)) < 0.8 * np.log(4)


def test_a_reservoir_forgets_no_period():
    data = cloud(1000, 2, 2)
    map_ = KCal("identity", capacity=200, keep="reservoir", bandwidth=1.0).fit(data.scores[:200], data.labels[:200])
    first = set(map(tuple, data.scores[:200]))
    for at in range(200, 1000, 100):
        map_.partial_fit(data.scores[at : at + 100], data.labels[at : at + 100])
    left = sum(tuple(row) in first for row in map_.points_)
    assert 20 <= left <= 65  # 40 on average


def test_the_same_bytes_where_torch_cannot_be_imported(tmp_path):
    pytest.importorskip("torch")
    data = cloud(700, 3, 6)
    fitted = KCal("learned", random_state=0).fit_projection(data.scores[:350], data.labels[:350])
    assert len(fitted.projection_losses_) > 1
    fitted.fit(data.scores[350:], data.labels[350:]).save(tmp_path / "k.calibrant")
    np.save(tmp_path / "x.npy", data.other)
    code = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("torch is blocked")
sys.meta_path.insert(0, Blocker())
import numpy as np, calibrant
x = np.load({str(tmp_path / "x.npy")!r})
sys.stdout.buffer.write(calibrant.load({str(tmp_path / "k.calibrant")!r}).predict_proba(x).tobytes())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == fitted.predict_proba(data.other).tobytes()


def test_means_and_spreads_count_a_weight_as_rows(rng):
    x, y, counts = rng.normal(size=(40, 3)), np.arange(40) % 4, rng.integers(1, 5, 40)
    means, seen, totals = class_means(x, y, counts * 1.0, 6)
    repeated, labels = np.repeat(x, counts, axis=0), np.repeat(y, counts)
    assert seen.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(means, [repeated[labels == c].mean(axis=0) for c in range(4)])
    np.testing.assert_allclose(totals, np.bincount(labels))
    assert spread_of(x, counts * 1.0) == pytest.approx(np.sqrt(repeated.var(axis=0).mean()))


def test_the_cost_of_dropping_rows_is_their_log_loss():
    """Two far clusters, one class each: dropped rows are sure without one another, and lost where no row is left."""
    points, labels = np.array([[0.0], [0.1], [50.0], [50.1]]), np.array([0, 0, 1, 1])
    sure = compression_loss(points, labels, np.ones(4), np.array([0, 2]), np.array([2.0, 2.0]), 1.0, 2)
    assert sure == pytest.approx((0.0, 0.0), abs=1e-6)
    exact, lost = compression_loss(points, labels, np.ones(4), np.array([0, 1]), np.array([2.0, 2.0]), 1.0, 2)
    assert exact == pytest.approx(0.0, abs=1e-6)
    assert lost == pytest.approx(-np.log(1e-10))


@pytest.mark.filterwarnings("ignore:.*not clearly better than the class frequencies")
def test_the_keys_of_a_reservoir_come_from_its_seed():
    data = cloud(40, 2, 2)
    for seed, wanted in ((None, 0), (3, 3)):
        map_ = KCal("identity", bandwidth=1.0, random_state=seed).fit(data.scores, data.labels)
        np.testing.assert_array_equal(map_.keys_, np.random.default_rng(wanted).random(40))
