"""SQL: run in DuckDB; the other dialects are read."""

import numpy as np
import pytest
from tests.exports.export_cases import MASKED, fitted, hard_rows, masked, quietly

from calibrant import CalibrantError, make

duckdb = pytest.importorskip("duckdb")
ONE = [
    "identity",
    "ts",
    "ets",
    "platt",
    "beta",
    "irova",
    "irm",
    "spline",
    "imax",
    "hb-width",
    "bbq",
    "vector",
]
MANY = ["ts", "ets", "vector", "platt", "beta", "irova", "irm", "imax", "hb-mass", "irova-ts", "matrix", "sms", "iop"]


def one_score(inputs):
    rng = np.random.default_rng(0)
    s = np.round(rng.normal(size=300) * 2, 2)
    y = (rng.random(300) < 1 / (1 + np.exp(-1.5 * s))).astype(int)
    return (s if inputs == "logits" else 1 / (1 + np.exp(-s))), y


def ask(text, values):
    rows = duckdb.connect()
    rows.execute("create table t(i integer, s double)")
    rows.executemany("insert into t values (?, ?)", [(i, v) for i, v in enumerate(values)])
    return [r[0] for r in rows.execute(f"select {text} from t order by i").fetchall()]


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("inputs", ["logits", "probabilities"])
def test_one_score_is_an_expression(name, inputs):
    s, y = one_score(inputs)
    calibrator = quietly(make(name, inputs=inputs), s, y)
    rows = np.concatenate([s[:80], [-np.inf, 0.0] if inputs == "logits" else [0.0, 1.0, 1e-12]])
    found = ask(calibrator.to_sql("s"), rows.tolist())
    np.testing.assert_allclose(found, calibrator.predict_proba(rows)[:, 1], rtol=0, atol=1e-13)


def test_null_and_what_is_no_number():
    calibrator = quietly(make("platt"), *one_score("logits"))
    null, nan, most = ask(calibrator.to_sql("s"), [None, float("nan"), float("inf")])
    assert null is None
    assert np.isnan(nan)
    assert most == calibrator.predict_proba(np.array([[-np.inf, 0.0]]))[0, 1]
    calibrator = quietly(make("platt", inputs="probabilities"), *one_score("probabilities"))
    assert np.isnan(ask(calibrator.to_sql("s"), [1.5])[0])


@pytest.mark.parametrize("name", MANY)
def test_a_column_a_class_is_a_view(name):
    calibrator, z = fitted(name), hard_rows(name)
    rows = duckdb.connect()
    rows.execute("create table t(id integer, a double, b double, c double, d double)")
    rows.executemany("insert into t values (?, ?, ?, ?, ?)", [(i, *map(float, row)) for i, row in enumerate(z)])
    rows.execute("create view v as " + calibrator.to_sql(["a", "b", "c", "d"], table="t", keep=["id"]))
    found = rows.execute("select p_0, p_1, p_2, p_3 from v order by id").fetchall()
    np.testing.assert_allclose(np.array(found), calibrator.predict_proba(z), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in MASKED if name != "blend"])
def test_masked_classes_stay_impossible(name):
    calibrator, z = masked(name)
    rows = duckdb.connect()
    rows.execute("create table t(id integer, a double, b double, c double, d double)")
    rows.executemany("insert into t values (?, ?, ?, ?, ?)", [(i, *map(float, row)) for i, row in enumerate(z)])
    query = calibrator.to_sql(["a", "b", "c", "d"], table="t", keep=["id"])
    found = np.array(rows.execute(f"select p_0, p_1, p_2, p_3 from ({query}) order by id").fetchall())
    assert (found[np.isneginf(z)] == 0).all()
    np.testing.assert_allclose(found, calibrator.predict_proba(z), rtol=0, atol=1e-12)


def test_a_long_map_of_one_score_is_a_query():
    s, y = one_score("logits")
    calibrator = quietly(make("sms"), s, y)
    with pytest.raises(CalibrantError, match="too long for one SQL expression"):
        calibrator.to_sql("s")
    rows = duckdb.connect()
    rows.execute("create table t(i integer, s double)")
    rows.executemany("insert into t values (?, ?)", list(enumerate(s[:50].tolist())))
    found = rows.execute(f"select p_1 from ({calibrator.to_sql(['s'], table='t', keep=['i'])}) order by i").fetchall()
    np.testing.assert_allclose(np.ravel(found), calibrator.predict_proba(s[:50])[:, 1], rtol=0, atol=1e-12)


def test_dialects_write_their_own_numbers():
    calibrator = quietly(make("platt"), *one_score("logits"))
    assert "double precision" in calibrator.to_sql("s", dialect="postgres")
    assert "'-Infinity'::float8" in calibrator.to_sql("s", dialect="postgres")
    assert "cast(s as float64)" in calibrator.to_sql("s", dialect="bigquery")
    assert "is_nan(" in calibrator.to_sql("s", dialect="bigquery")
    view = fitted("ts").to_sql(["a", "b", "c", "d"], dialect="postgres", table="t")
    assert view.count(" as materialized (select") == view.count("(select") > 1
    with pytest.raises(CalibrantError, match="no such dialect"):
        calibrator.to_sql("s", dialect="oracle")


def test_refusals():
    with pytest.raises(CalibrantError, match="selects from a table"):
        fitted("ts").to_sql(["a", "b", "c", "d"])
    with pytest.raises(CalibrantError, match="one column a class"):
        fitted("ts").to_sql(["a", "b"], table="t")
    with pytest.raises(CalibrantError, match="two classes"):
        fitted("ts").to_sql("a")


@pytest.mark.parametrize("bad", [[1, 2, 3, 4], ["a", "b", "", "d"], ["a", None, "c", "d"], 5, ""])
def test_columns_that_are_no_words_are_refused(bad):
    with pytest.raises(CalibrantError, match="names in SQL"):
        fitted("ts").to_sql(bad, table="t")
    with pytest.raises(CalibrantError, match="names in SQL"):
        fitted("ts").to_sql(["a", "b", "c", "d"], table="t", keep=[3])


def test_names_of_classes_are_quoted_and_stay_apart():
    z, y = np.random.default_rng(0).normal(size=(60, 3)), np.array(['a"b', "ab", "x'; drop table t; --"])
    map_ = quietly(make("ts", classes=y), z, y[np.arange(60) % 3])
    con = duckdb.connect()
    con.execute("create table t as select 1.0 as a, 0.5 as b, 0.1 as c")
    found = con.execute(map_.to_sql(["a", "b", "c"], table="t"))
    assert [column[0] for column in found.description] == [f"p_{name}" for name in y]
    np.testing.assert_allclose(found.fetchone(), map_.predict_proba([[1.0, 0.5, 0.1]])[0], atol=1e-12)


@pytest.mark.parametrize("name", ["ts", "irova"])
def test_many_classes_are_written_a_few_times_each(name):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 120)) * 3
    calibrator = quietly(make(name), z, (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1))
    columns = [f"s{i}" for i in range(120)]
    text = calibrator.to_sql(columns, table="t", keep=["id"])
    assert len(text) < 120 * 6000  # it was 120 times as long when every column was written for every other
    rows = duckdb.connect()
    rows.execute(f"create table t(id integer, {', '.join(f'{name} double' for name in columns)})")
    rows.executemany(
        f"insert into t values ({', '.join('?' * 121)})", [(i, *row) for i, row in enumerate(z[:5].tolist())]
    )
    found = rows.execute(f"select * exclude (id) from ({text}) order by id").fetchall()
    np.testing.assert_allclose(np.array(found), calibrator.predict_proba(z[:5]), rtol=0, atol=1e-13)


def test_a_query_that_is_too_long_is_refused_in_words():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 30))
    calibrator = quietly(make("hoki"), z, (z + rng.gumbel(size=z.shape)).argmax(axis=1))
    with pytest.raises(CalibrantError, match="hoki of 30 columns is too long for SQL"):
        calibrator.to_sql([f"s{i}" for i in range(30)], table="t")
    z = rng.normal(size=(900, 300))
    calibrator = quietly(make("platt"), z, (z + rng.gumbel(size=z.shape)).argmax(axis=1))
    with pytest.raises(CalibrantError, match="where an engine takes 1,600"):
        calibrator.to_sql([f"s{i}" for i in range(300)], "postgres", table="t")
