"""However rows are cut into partitions, whoever reads them and in whatever order they merge, the answer is the same."""

import functools
import operator
import os
import pickle
import resource
from dataclasses import replace

import numpy as np
import pytest

import calibrant
from calibrant import CalibrantError, make, registry
from calibrant.metrics import Measuring
from calibrant.metrics.estimators.variational import variational_of
from calibrant.metrics.table import TABLE
from calibrant.metrics.views.forecasts import read
from calibrant.passes.batch import Batch, Origin
from calibrant.passes.wire import from_bytes, to_bytes
from calibrant.scanning import looking, scanned
from calibrant.scanning.reading import Reading

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
GENERATOR = np.random.default_rng(3)
N = 1500
Z = GENERATOR.normal(size=(N, 3)) * 2
Y = (0.6 * Z + GENERATOR.gumbel(size=Z.shape)).argmax(axis=1)
BY_CLASS = np.argsort(Y, kind="stable")
CUTS = {
    "one": (np.arange(N), []),
    "empty": (np.arange(N), [0, 700, 700]),
    "a row": (np.arange(N), [1, 2]),
    "without a class": (BY_CLASS, [int((Y == 0).sum()), int((Y < 2).sum())]),
    "skewed": (np.arange(N), [5, 9, 1400]),
    "backwards": (np.arange(N)[::-1], [300, 1100]),
}
MAPS = ("ts", "ets", "vector", "platt", "imax", "irm", "hb-mass-s", "bts")
PLAIN = {name: make(name).fit(Z, Y).predict_proba(Z) for name in MAPS}
SUMS = ("calibration_error", "ece", "mce", "cwece", "observed_expected", "accuracy", "event_rate", "brier", "nll")
CROSSFITTED = ("variational_error", "over_confidence", "under_confidence")  # on other folds, as those are of cells
METRICS = ("ece", "cwece", "brier", "nll", "mce", "smece")
P = make("identity").fit(Z, Y).predict_proba(Z)


@pytest.fixture(autouse=True)
def nothing_is_held(monkeypatch):
    monkeypatch.setattr(scanned, "HELD", 0)
    monkeypatch.setattr(scanned, "HELD_BY_CLUSTERS", 0)


def parts_of(cut):
    order, places = CUTS[cut]
    return np.split(order, places)


def stream(cut, room):
    return calibrant.scan(lambda: ((Z[rows], Y[rows]) for rows in parts_of(cut)))


def files(cut, room):
    for i, rows in enumerate(parts_of(cut)):
        scores = pa.array(Z[rows].tolist(), type=pa.list_(pa.float64()))
        pq.write_table(pa.table({"label": Y[rows], "logits": scores}), room / f"{i}.parquet")
    return calibrant.scan(room, scores="logits", label="label")


def cluster(cut, room):
    da = pytest.importorskip("dask.array")
    order, places = CUTS[cut]
    sizes = tuple(np.diff([0, *places, N]).tolist())
    return calibrant.scan(da.from_array(Z[order], chunks=(sizes, 3)), label=da.from_array(Y[order], chunks=(sizes,)))


class Posted:
    """Partitions that get a pickled function and send bytes, as Spark's do, without its seconds a pass."""

    is_cluster, n_partitions, words = True, 0, "posted partitions"

    def __init__(self, parts):
        self.parts = parts

    def head(self):
        return None

    def reduce(self, function):
        sent = pickle.dumps(function)
        found = [pickle.loads(sent)(iter([Batch(*part, origin=Origin("part", 0))])) for part in self.parts]
        answers = [from_bytes(to_bytes(answer)) for answer in found if answer is not None]
        return functools.reduce(operator.add, answers) if answers else None


def posted(cut, room):
    return replace(stream(cut, room), source=Posted([(Z[rows], Y[rows]) for rows in parts_of(cut)]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("engine", [stream, files, cluster, posted])
def test_maps_and_metrics_do_not_depend_on_engine_and_partitions(engine, cut, tmp_path):
    data = engine(cut, tmp_path)
    for name in MAPS:
        gap = np.abs(make(name).fit(data).predict_proba(Z) - PLAIN[name]).max()
        assert gap <= (0.01 if name == "irm" else 1e-5), name
    for name in METRICS:
        exact = getattr(calibrant.metrics, name)(Y, P)
        assert data.metric(name, inputs="logits") == pytest.approx(exact, abs=2e-3 if name == "smece" else 1e-6), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in registry.names() if not name.startswith("kcal")])
def test_every_map_fits_from_a_cluster_as_from_arrays(name):
    da = pytest.importorskip("dask.array")
    first = np.argsort(Y[:400], kind="stable")  # partitions of one row, of none, and some without a class
    places = [0, 1, 1, int((Y[:400] == 0).sum()), 390, 400]
    sizes = tuple(np.diff(places).tolist())
    z, y = da.from_array(Z[first], chunks=(sizes, 3)), da.from_array(Y[first], chunks=(sizes,))
    parts = [(Z[rows], Y[rows]) for rows in np.split(first, places[1:-1])]
    expected = make(name).fit(Z[:400], Y[:400]).predict_proba(Z)
    for data in (calibrant.scan(z, label=y), replace(stream("one", None), source=Posted(parts))):
        np.testing.assert_allclose(make(name).fit(data).predict_proba(Z), expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", [stream, cluster, posted])
def test_every_metric_that_streams_is_that_of_the_arrays(engine, tmp_path):
    data = engine("without a class", tmp_path)
    asks = {"net_benefit": {"threshold": 0.4}, "recalibration_benefit": {"threshold": 0.4}}
    for name in TABLE.keys() - {"skce", "canonical_error", "sharpness"}:  # pairs of rows; no labels
        exact = getattr(calibrant.metrics, name)(Y, P, **asks.get(name, {}))
        found = data.metric(name, inputs="logits", **asks.get(name, {}))
        room = 1e-9 if name in SUMS else 3e-3  # the others: cells
        if name in CROSSFITTED:
            room = variational_of(read(Y, P).top).mean_error / 2
        assert found == pytest.approx(exact, abs=room), name


def test_states_merge_in_any_order():
    states = [Measuring(resamples=99).update(Y[rows], P[rows]) for rows in parts_of("skewed")]
    forwards, backwards = states[0], states[-1]
    for i in range(1, len(states)):
        forwards, backwards = forwards + states[i], backwards + states[-1 - i]
    one, other = forwards.finalise(), backwards.finalise()
    for name, figure in one.metrics.items():
        assert figure.estimate == pytest.approx(other.metrics[name].estimate, abs=1e-12), name


def test_what_is_wrong_in_the_last_batch_is_said_by_file_and_row(tmp_path):
    files("skewed", tmp_path)
    bad = Z[:4].copy()
    bad[2, 1] = np.nan
    scores = pa.array(bad.tolist(), type=pa.list_(pa.float64()))
    pq.write_table(pa.table({"label": Y[:4], "logits": scores}), tmp_path / "9.parquet")
    with pytest.raises(CalibrantError, match=r"row 2 of .*9\.parquet"):
        make("ts").fit(calibrant.scan(tmp_path, scores="logits", label="label"))
    good = pa.array(Z[:4].tolist(), type=pa.list_(pa.float64()))
    pq.write_table(pa.table({"label": [0, 1, 7, 0], "logits": good}), tmp_path / "9.parquet")
    with pytest.raises(CalibrantError, match="7"):
        make("ts").fit(calibrant.scan(tmp_path, scores="logits", label="label"))
    pq.write_table(pa.table({"label": ["cat", "dog", "cat", "cat"], "logits": good}), tmp_path / "9.parquet")
    with pytest.raises(CalibrantError, match="cat"):
        make("ts").fit(calibrant.scan(tmp_path, scores="logits", label="label"))
    pq.write_table(pa.table({"logits": good}), tmp_path / "9.parquet")
    with pytest.raises(CalibrantError, match=r"9\.parquet has no column 'label'"):
        make("ts").fit(calibrant.scan(tmp_path, scores="logits", label="label"))


def test_a_disk_that_is_full_leaves_the_old_output(tmp_path):
    fitted = make("ts").fit(Z, Y)
    (tmp_path / "in").mkdir()
    data = files("skewed", tmp_path / "in")
    calibrant.apply(fitted, data, to=tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # no file may be larger, as on a disk that is full
    try:
        with pytest.raises(CalibrantError, match="cannot write"):
            calibrant.apply(make("ets").fit(Z, Y), data, to=tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert sorted(os.listdir(tmp_path)) == ["in", "out"]


@pytest.mark.filterwarnings("ignore")
def test_a_dask_worker_that_dies_in_the_middle_changes_nothing(tmp_path):
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    marker = tmp_path / "died"

    def dies_once(block, block_id=None):
        if block_id == (2, 0) and not marker.exists():
            marker.touch()
            os._exit(1)
        return block

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as workers,
        distributed.Client(workers),
    ):
        z = da.from_array(Z, chunks=(400, 3)).map_blocks(dies_once, dtype=Z.dtype)
        fitted = make("ets").fit(calibrant.scan(z, label=da.from_array(Y, chunks=400)))
    assert marker.exists()
    assert np.abs(fitted.predict_proba(Z) - PLAIN["ets"]).max() <= 1e-5


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_partitions_send_enough_of_their_samples_and_not_much_more(known, count, monkeypatch):
    """Who does not know how many there are sends the share of one more than its number, and the last sends its due."""
    monkeypatch.setattr(looking, "_LEAST_PILOT", 300)
    monkeypatch.setattr(looking, "_MOST_PILOT", 300)
    monkeypatch.setattr(looking, "judged_rows", lambda columns: 200)
    rng = np.random.default_rng(count)
    z = rng.normal(size=(40_000, 3))
    parts = np.array_split(np.arange(len(z)), count)
    wanted = looking.Wanted(0, count if known else 0)
    start = Reading("logits", False, 0, None, np.float64, np.arange(3))
    found = [
        looking.look([Batch(z[rows], rows % 3, origin=Origin("part", 0, part=i))], start, None, wanted).survey
        for i, rows in enumerate(parts)
    ]
    total, size = functools.reduce(operator.add, found), wanted.size(3)
    assert total.sample.covers(size.rows)
    assert total.held.covers(size.held)
    sent = sum(len(survey.sample.keys) for survey in found)
    shares = 1.0 if known else sum(1 / (i + 1) for i in range(count))
    assert sent <= 1.5 * 300 * shares + count * (5 * (1.5 * 300) ** 0.5 + 11)
    assert len(found[-1].sample.keys) <= 1.5 * 300 / count + 5 * (1.5 * 300 / count) ** 0.5 + 10
