"""Every kind of source that `calibrant.scan` names answers as arrays do, and what it brings beside is heeded."""

import json

import numpy as np
import pytest

import calibrant
from calibrant import CalibrantError, make
from calibrant.arrays import softmax
from calibrant.scanning import scanned

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pd = pytest.importorskip("pandas")
GENERATOR = np.random.default_rng(0)
Z = (GENERATOR.normal(size=(3000, 4)) * 2).astype(np.float32)
Y = (0.6 * Z + GENERATOR.gumbel(size=Z.shape)).argmax(axis=1)
GROUP = np.where(np.arange(3000) % 3 == 0, "a", "b")
PLAIN = make("ts").fit(Z, Y)
FRAME = pd.DataFrame({"label": Y, **{f"logit_{i}": Z[:, i] for i in range(4)}, "group": GROUP})


@pytest.fixture(params=[0, 10**9])
def held(request, monkeypatch):
    monkeypatch.setattr(scanned, "HELD", request.param)
    monkeypatch.setattr(scanned, "HELD_BY_CLUSTERS", request.param)


@pytest.fixture
def wide(tmp_path):
    FRAME.to_parquet(tmp_path / "wide.parquet")
    return str(tmp_path / "wide.parquet")


def jsonl(wide):
    path = wide.replace("wide.parquet", "rows.jsonl")
    rows = ({"label": int(y), "logits": z.astype(float).tolist()} for z, y in zip(Z, Y, strict=True))
    with open(path, "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return calibrant.scan(path)


def lazy_frame(wide):
    polars = pytest.importorskip("polars")
    return calibrant.scan(polars.scan_parquet(wide), scores="logit_", label="label")


def relation(wide):
    duckdb = pytest.importorskip("duckdb")
    return calibrant.scan(duckdb.sql(f"select * from '{wide}'"), scores="logit_", label="label")


def loader(wide):
    torch = pytest.importorskip("torch")
    rows = torch.utils.data.TensorDataset(torch.tensor(Z), torch.tensor(Y))
    return calibrant.scan(lambda: torch.utils.data.DataLoader(rows, batch_size=512))


def dask_frame(wide):
    frames = pytest.importorskip("dask.dataframe")
    return calibrant.scan(frames.from_pandas(FRAME, npartitions=3), scores="logit_", label="label")


def dataset(wide):
    datasets = pytest.importorskip("pyarrow.dataset")
    return calibrant.scan(datasets.dataset(wide), scores="logit_*", label="label")


KINDS = {
    "jsonl": jsonl,
    "prefix": lambda wide: calibrant.scan(wide, scores="logit_", label="label"),
    "names": lambda wide: calibrant.scan(wide, scores=[f"logit_{i}" for i in range(4)], label="label"),
    "polars": lazy_frame,
    "duckdb": relation,
    "loader": loader,
    "dask frame": dask_frame,
    "dataset": dataset,
    "pandas": lambda wide: calibrant.scan(FRAME, scores="logit_", label="label"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_answers_as_arrays_do(kind, wide, held):
    assert make("ts").fit(KINDS[kind](wide)).temperature_ == pytest.approx(PLAIN.temperature_, rel=1e-6)


def test_a_sample_is_one_pass_and_no_more(wide, held):
    data = calibrant.scan(wide, scores="logit_", label="label", sample=500)
    numbers = set()
    with calibrant.scanning.watched(lambda number, rows, total: numbers.add(number)):
        fitted = make("ets").fit(data)
    assert numbers == {1}
    assert fitted.temperature_ == pytest.approx(PLAIN.temperature_, rel=0.2)


def test_a_sample_is_all_that_is_measured(wide, held):
    data = calibrant.scan(wide, scores="logit_", label="label", sample=500)
    numbers = set()
    with calibrant.scanning.watched(lambda number, rows, total: numbers.add(number)):
        found = calibrant.measure(data, inputs="logits", resamples=50)
    assert numbers == {1}
    assert found.n == 500
    rows = calibrant.scan(wide, scores="logit_", label="label").given("logits", None, saturated=None, embedded=False)
    few = rows.data.pilot(500).rows()
    assert data.metric("brier", inputs="logits") == pytest.approx(found.metrics["brier"].estimate)
    assert found.metrics["brier"].estimate == pytest.approx(calibrant.metrics.brier(few.labels, softmax(few.logits)))
    grouped = calibrant.scan(wide, scores="logit_", label="label", sample=500, group="group")
    with pytest.raises(CalibrantError, match="no groups"):
        calibrant.measure(grouped, inputs="logits")


def test_groups_have_figures_of_their_own(wide, held):
    found = calibrant.measure(calibrant.scan(wide, scores="logit_", label="label", group="group"), inputs="logits")
    exact = calibrant.measure(Y, make("identity").fit(Z, Y).predict_proba(Z), groups=GROUP)
    assert list(found.groups) == ["a", "b"]
    for name, part in exact.groups.items():
        assert found.groups[name].n == part.n
        assert found.groups[name].metrics["ece"].estimate == pytest.approx(part.metrics["ece"].estimate, abs=1e-6)
    for row, other in zip(found.group_findings.rows, exact.group_findings.rows, strict=True):
        assert (row.name, row.rows) == (other.name, other.rows)
        assert row.gap == pytest.approx(other.gap, abs=1e-6)


def test_one_event_stays_one(held, tmp_path):
    p = GENERATOR.random(3000)
    y = (GENERATOR.random(3000) < p**1.5).astype(int)
    data = calibrant.scan(p, label=y)
    found, exact = calibrant.measure(data, inputs="probabilities"), calibrant.measure(y, p)
    assert found.is_event
    assert found.metrics["ece"].estimate == pytest.approx(exact.metrics["ece"].estimate, abs=1e-6)
    fitted = make("beta", inputs="probabilities").fit(data)
    through = calibrant.measure(data.mapped(fitted))
    exact = calibrant.measure(y, fitted.predict_proba(p)[:, 1])
    assert through.is_event
    assert through.metrics["ece"].estimate == pytest.approx(exact.metrics["ece"].estimate, abs=1e-6)
    pq.write_table(pa.table({"risk": p, "label": y}), tmp_path / "events.parquet")
    calibrant.apply(fitted, calibrant.scan(tmp_path / "events.parquet", scores="risk"), to=tmp_path / "out.parquet")
    np.testing.assert_allclose(pq.read_table(tmp_path / "out.parquet")["calibrated"], fitted.predict_proba(p)[:, 1])


def test_one_metric_of_a_scan(held):
    data = calibrant.scan(Z, label=Y)
    p = make("identity").fit(Z, Y).predict_proba(Z)
    for name in ("ece", "cwece", "brier", "nll"):
        exact = getattr(calibrant.metrics, name)(Y, p)
        assert data.metric(name, inputs="logits") == pytest.approx(exact, abs=1e-6), name


def test_a_fit_that_needs_rows_states_its_sample(monkeypatch):
    monkeypatch.setattr(scanned, "HELD", 0)
    monkeypatch.setattr("calibrant.calibrator.Calibrator._sample_rows", 500)
    with pytest.warns(calibrant.CalibrationWarning, match="a sample of 500 of 3,000 rows"):
        make("hoki", transformations=20).fit(calibrant.scan(Z, label=Y))


@pytest.mark.filterwarnings("ignore")  # of Dask about pandas
def test_apply_to_a_dask_frame_is_lazy(wide):
    frames = pytest.importorskip("dask.dataframe")
    lazy = calibrant.apply(PLAIN, dask_frame(wide))
    assert type(lazy).__module__.startswith("dask")
    columns = [f"calibrated_{i}" for i in range(4)]
    np.testing.assert_allclose(lazy.compute()[columns], PLAIN.predict_proba(Z), atol=1e-6)
    table = pa.table({"label": Y, "logits": pa.array(Z.tolist(), type=pa.list_(pa.float32()))})
    pq.write_table(table, wide)
    lists = calibrant.apply(PLAIN, calibrant.scan(frames.read_parquet(wide), scores="logits", label="label"))
    np.testing.assert_allclose(np.stack(lists.compute()["calibrated"]), PLAIN.predict_proba(Z), atol=1e-6)


def test_apply_keeps_files_of_one_name_apart_and_packed_text_packed(tmp_path):
    import gzip

    text = "label,logit_0,logit_1,logit_2,logit_3\n"
    text += "".join(f"{y},{','.join(map(repr, z.tolist()))}\n" for z, y in zip(Z[:50], Y[:50], strict=True))
    for room in ("one", "two"):
        (tmp_path / "in" / room).mkdir(parents=True)
        with gzip.open(tmp_path / "in" / room / "part.csv.gz", "wt") as file:
            file.write(text)
    calibrant.apply(PLAIN, calibrant.scan(tmp_path / "in"), to=tmp_path / "out")
    for room in ("one", "two"):
        with gzip.open(tmp_path / "out" / room / "part.csv.gz", "rt") as file:
            written = pd.read_csv(file)
        assert written.columns.tolist()[-1] == "calibrated_3"
        assert len(written) == 50


def test_apply_refuses_what_is_not_a_scan_or_a_place(wide):
    with pytest.raises(CalibrantError, match="needs a scan"):
        calibrant.apply(PLAIN, Z, to="out")
    with pytest.raises(CalibrantError, match="needs a fitted map"):
        calibrant.apply(make("ts"), calibrant.scan(wide, scores="logit_"), to="out")
    with pytest.raises(CalibrantError, match="needs a place"):
        calibrant.apply(PLAIN, calibrant.scan(wide, scores="logit_"))
    with pytest.raises(CalibrantError, match="writes nothing"):
        calibrant.apply(PLAIN, dask_frame(wide), to="out")


def test_new_columns_have_decimal_commas_where_the_scores_have_them(tmp_path):
    lines = ["p_well;p_sick;label", "0,7;0,3;well", "0,2;0,8;sick", "0,6;0,4;sick", "0,5;0,5;well"]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = calibrant.scan(tmp_path / "in.csv")
    calibrant.apply(make("identity", inputs="probabilities").fit(data), data, to=tmp_path / "out.csv")
    written = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert written == [lines[0] + ";calibrated_well;calibrated_sick", *(line + ";" + line[:7] for line in lines[1:])]


@pytest.mark.parametrize("order", [["c", "a", "b"], ["a", "b", "c"]])
@pytest.mark.parametrize("fitted_on", ["scan", "frame", "places", "words"])
def test_what_a_map_answers_keeps_the_names_of_its_classes(tmp_path, order, fitted_on):
    """Answers lost them, and classes went by the alphabet: a mapped scan was measured at an accuracy of .16 for .69."""
    rng, names = np.random.default_rng(0), np.array(["c", "a", "b"])
    p = rng.dirichlet(np.ones(3), 400)
    y = np.array([rng.choice(3, p=row) for row in p])
    frame = pd.DataFrame(p, columns=["p_c", "p_a", "p_b"]).assign(label=names[y])
    frame.to_csv(tmp_path / "rows.csv", index=False)

    def rows(columns):
        return calibrant.scan(tmp_path / "rows.csv", scores=[f"p_{name}" for name in columns], label="label")

    cal = calibrant.TemperatureScaling(inputs="probabilities", classes=names if fitted_on == "words" else None)
    given = {
        "scan": (rows(names),),
        "frame": (frame[["p_c", "p_a", "p_b"]], frame["label"]),
        "places": (p, y),
        "words": (p, names[y]),
    }[fitted_on]
    mapped = rows(order).mapped(cal.fit(*given))
    accuracy = (p.argmax(axis=1) == y).mean()
    assert mapped.metric("accuracy") == pytest.approx(accuracy)
    assert calibrant.measure(mapped, resamples=19).rate.estimate == pytest.approx(accuracy)
    again = calibrant.TemperatureScaling(inputs="probabilities").fit(mapped)
    assert again.temperature_ == pytest.approx(1, abs=0.01)
    assert calibrant.measure(mapped.mapped(again), resamples=19).rate.estimate == pytest.approx(accuracy)


def test_new_columns_are_called_as_those_of_the_scores(tmp_path):
    pd.DataFrame({"p_no": [0.8, 0.3, 0.6], "p_yes": [0.2, 0.7, 0.4], "label": [0, 1, 0]}).to_csv(tmp_path / "a.csv")
    fitted = make("identity", inputs="probabilities").fit(calibrant.scan(tmp_path / "a.csv"))
    turned = pd.read_csv(tmp_path / "a.csv", index_col=0)[["p_yes", "p_no", "label"]]
    turned.to_csv(tmp_path / "b.csv", index=False)
    for name in ("a.csv", "b.csv"):
        calibrant.apply(fitted, calibrant.scan(tmp_path / name), to=tmp_path / "out.csv")
        written = pd.read_csv(tmp_path / "out.csv")
        np.testing.assert_allclose(written["calibrated_yes"], fitted.predict_proba(turned[["p_no", "p_yes"]])[:, 1])


def test_a_part_of_a_parquet_file_is_read_by_the_names_of_its_columns(tmp_path, held):
    frame = FRAME.assign(split=np.where(np.arange(3000) < 1000, "val", "test"))
    frame.to_parquet(tmp_path / "split.parquet")
    found = calibrant.scan(tmp_path / "split.parquet", scores="logit_*", label="label", part="val")
    assert found.metric("nll", inputs="logits") == pytest.approx(
        calibrant.metrics.nll(Y[:1000], softmax(Z[:1000])), abs=1e-6
    )


def test_through_a_map_labels_in_words_go_by_its_classes(held):
    words = np.array(["soil", "bark", "ash", "moor"])[Y]
    fitted = make("ts", classes=["soil", "bark", "ash", "moor"]).fit(Z, words)
    through = calibrant.scan(Z, label=words).mapped(fitted)
    exact = calibrant.metrics.nll(Y, fitted.predict_proba(Z))
    assert through.metric("nll") == pytest.approx(exact, abs=1e-6)
    assert make("identity").fit(through).classes_.tolist() == ["soil", "bark", "ash", "moor"]


def test_groups_are_not_passed_over_where_maps_are_compared(held):
    data = calibrant.scan(FRAME, scores="logit_", label="label", group="group")
    for choose in (calibrant.compare, make("auto").fit):
        with pytest.raises(CalibrantError, match="on a scan takes no groups"):
            choose(data)
