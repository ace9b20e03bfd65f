"""Spark DataFrames, in one session; skipped with a sentence where there is no Java."""

import os
import subprocess
import sys

import numpy as np
import pytest
from tests.scanning import java

import calibrant
from calibrant import make
from calibrant.scanning import scanned

pytest.importorskip("pyspark")
GENERATOR = np.random.default_rng(0)
Z = (GENERATOR.normal(size=(2000, 4)) * 2).astype(np.float32)
Y = (0.6 * Z + GENERATOR.gumbel(size=Z.shape)).argmax(axis=1)


@pytest.fixture(scope="module")
def frame(tmp_path_factory):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    java.ready(tmp_path_factory.mktemp("java"))
    from pyspark.sql import SparkSession

    room = tmp_path_factory.mktemp("parts")
    for i, rows in enumerate(np.split(np.arange(2000), [1, 900, 900])):
        scores = pa.array(Z[rows].tolist(), type=pa.list_(pa.float32()))
        pq.write_table(pa.table({"label": Y[rows], "logits": scores}), room / f"{i}.parquet")
    spark = SparkSession.builder.master("local[2, 3]").config("spark.ui.enabled", "false").getOrCreate()
    yield spark.read.parquet(str(room))
    spark.stop()


@pytest.mark.filterwarnings("ignore")
def test_a_frame_answers_as_arrays_do(frame, monkeypatch):
    for held, name in ((10**9, "irm"), (0, "ets"), (0, "platt"), (0, "vector"), (0, "hb-mass-s")):
        monkeypatch.setattr(scanned, "HELD_BY_CLUSTERS", held)
        data = calibrant.scan(frame, scores="logits", label="label")
        gap = np.abs(make(name).fit(data).predict_proba(Z) - make(name).fit(Z, Y).predict_proba(Z)).max()
        assert gap <= 1e-5, name
    p = make("identity").fit(Z, Y).predict_proba(Z)
    for name in ("ece", "cwece", "nll"):
        exact = getattr(calibrant.metrics, name)(Y, p)
        assert data.metric(name, inputs="logits") == pytest.approx(exact, abs=1e-6), name
    applied = calibrant.apply(make("ts").fit(Z, Y), calibrant.scan(frame, scores="logits", label="label"))
    assert applied.columns == ["label", "logits", "calibrated"]
    assert applied.count() == 2000


@pytest.mark.filterwarnings("ignore")
def test_a_task_that_fails_once_changes_nothing(frame, monkeypatch, tmp_path):
    monkeypatch.setattr(scanned, "HELD_BY_CLUSTERS", 0)
    marker = str(tmp_path / "failed")

    def fails_once(batches):
        if not os.path.exists(marker):
            open(marker, "w").close()
            raise RuntimeError("this task fails once")
        yield from batches

    calibrant.scan(frame, scores="logits", label="label")  # from here on workers run this Python: `fails_once` too
    again = frame.mapInArrow(fails_once, frame.schema)
    fitted = make("ts").fit(calibrant.scan(again, scores="logits", label="label"))
    assert os.path.exists(marker)
    assert fitted.temperature_ == pytest.approx(make("ts").fit(Z, Y).temperature_, rel=1e-6)
    applied = calibrant.apply(fitted, calibrant.scan(frame, scores="logits", label="label"))
    found = applied.toPandas().sort_values("label", kind="stable")
    assert np.allclose(np.stack(found["calibrated"]), fitted.predict_proba(np.stack(found["logits"])), atol=1e-6)


CONNECTED = """
import sys
import numpy as np
from pyspark.sql import SparkSession
import calibrant
from calibrant.scanning import scanned

spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.read.parquet(sys.argv[1])
assert type(frame).__module__.startswith("pyspark.sql.connect"), type(frame)
rows = frame.toPandas()
z, y = np.stack(rows["logits"]).astype(np.float32), rows["label"].to_numpy()
scanned.HELD_BY_CLUSTERS = 0
data = calibrant.scan(frame, scores="logits", label="label")
fitted, known = calibrant.make("ts").fit(data), calibrant.make("ts").fit(z, y)
assert abs(fitted.temperature_ / known.temperature_ - 1) < 1e-6
p = calibrant.make("identity").fit(z, y).predict_proba(z)
assert abs(data.metric("ece", inputs="logits") - calibrant.metrics.ece(y, p)) < 1e-6
found = calibrant.apply(fitted, data).toPandas()
assert np.allclose(np.stack(found["calibrated"]), fitted.predict_proba(np.stack(found["logits"])), atol=1e-6)
print("connected", len(found))
"""


def test_connect(tmp_path):
    """A server of its own, in a process of its own: a session of the other kind cannot be beside it."""
    why = "Spark Connect needs grpcio, grpcio-status and zstandard: pip install 'pyspark[connect]'"
    for module in ("grpc", "grpc_status", "zstandard"):
        pytest.importorskip(module, reason=why)
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    java.ready(tmp_path)
    scores = pa.array(Z.tolist(), type=pa.list_(pa.float32()))
    (tmp_path / "rows").mkdir()
    for i in range(2):
        part = slice(1000 * i, 1000 * (i + 1))
        pq.write_table(pa.table({"label": Y[part], "logits": scores[part]}), tmp_path / "rows" / f"{i}.parquet")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CONNECTED, str(tmp_path / "rows")],
        capture_output=True,
        text=True,
        timeout=280,
        env={**kept, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "connected 2000" in done.stdout
