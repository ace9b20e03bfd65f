"""Files, arrays, frames and streams answer as arrays do, in few passes, and say what is wrong by file and row."""

import contextlib
import itertools

import numpy as np
import pytest

import calibrant
from calibrant import CalibrantError, make
from calibrant.arrays import softmax
from calibrant.passes.wire import from_bytes, to_bytes
from calibrant.scanning import scanned

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
GENERATOR = np.random.default_rng(0)
Z = (GENERATOR.normal(size=(6000, 4)) * 2).astype(np.float32)
Y = (0.6 * Z + GENERATOR.gumbel(size=Z.shape)).argmax(axis=1)
PLAIN = make("ts").fit(Z, Y).temperature_


def table(rows, kind=np.float32):
    scores = pa.array(Z[rows].astype(kind).tolist(), type=pa.list_(pa.from_numpy_dtype(kind)))
    return pa.table({"id": [f"r{r}" for r in rows], "label": Y[rows], "logits": scores})


@pytest.fixture
def parts(tmp_path):
    room = tmp_path / "parts"
    room.mkdir()
    for i, rows in enumerate(np.split(np.arange(6000), [1, 2000, 2000, 4500])):
        pq.write_table(table(rows), room / f"part-{i}.parquet")
    return room


def sources(room, tmp_path):
    np.save(tmp_path / "z.npy", Z)
    np.save(tmp_path / "y.npy", Y)
    np.savez(tmp_path / "stored.npz", logits=Z, labels=Y)
    np.savez_compressed(tmp_path / "packed.npz", logits=Z, labels=Y)
    lines = ["label,logits_0,logits_1,logits_2,logits_3"]
    lines += [f"{y}," + ",".join(repr(float(v)) for v in z) for z, y in zip(Z, Y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    whole = pa.concat_tables([table(np.arange(6000))])
    return {
        "pattern": calibrant.scan(str(room / "*.parquet"), scores="logits", label="label"),
        "npy": calibrant.scan(tmp_path / "z.npy", label=tmp_path / "y.npy"),
        "stored": calibrant.scan(tmp_path / "stored.npz"),
        "packed": calibrant.scan(tmp_path / "packed.npz"),
        "csv": calibrant.scan(tmp_path / "t.csv"),
        "arrow": calibrant.scan(whole, scores="logits", label="label"),
        "one-shot": calibrant.scan(whole.to_reader(), scores="logits", label="label", spill=True),
        "array": calibrant.scan(Z, label=Y),
        "batches": calibrant.scan(lambda: ((Z[i : i + 999], Y[i : i + 999]) for i in range(0, 6000, 999))),
    }


@pytest.mark.parametrize("held", [0, 10**9])
def test_every_source_answers_as_arrays_do(parts, tmp_path, monkeypatch, held):
    monkeypatch.setattr(scanned, "HELD", held)
    for name, data in sources(parts, tmp_path).items():
        assert make("ts").fit(data).temperature_ == pytest.approx(PLAIN, rel=1e-6), name
        found = calibrant.measure(data, inputs="logits", resamples=99)
        exact = calibrant.measure(Y, make("identity").fit(Z, Y).predict_proba(Z), resamples=99)
        assert found.metrics["ece"].estimate == pytest.approx(exact.metrics["ece"].estimate, abs=1e-4), name


LIMITS = {"ts": 4, "ets": 6, "platt": 5, "beta": 5, "iop": 8, "vector": 12, "sms": 40}
LIMITS |= dict.fromkeys(["hb-mass", "hb-mass-s", "hb-width", "imax", "imax-cw", "irm", "irova"], 3)


@pytest.mark.parametrize("name", LIMITS)
def test_full_passes_are_few_and_answers_those_of_arrays(name, monkeypatch):
    monkeypatch.setattr(scanned, "HELD", 0)
    monkeypatch.setattr("calibrant.operators.one_vs_rest._LARGE", 0)
    passes = itertools.count()

    def start():
        next(passes)
        yield from ((Z[i : i + 2500], Y[i : i + 2500]) for i in range(0, 6000, 2500))

    fitted = make(name).fit(calibrant.scan(start))
    assert next(passes) <= LIMITS[name]
    gap = np.abs(fitted.predict_proba(Z) - make(name).fit(Z, Y).predict_proba(Z))
    assert gap.max() <= 1e-5


@pytest.mark.filterwarnings("ignore:.*makes its held-out nll worse")  # of calibrated scores nothing is to be had
@pytest.mark.parametrize(("sharpness", "noise", "k"), [(1.0, 0.0, 2), (1.0, 0.0, 10), (2.0, 0.03, 3), (0.5, 0.03, 10)])
def test_ets_is_found_in_few_passes_where_scores_are_calibrated_already(sharpness, noise, k, monkeypatch, rng):
    monkeypatch.setattr(scanned, "HELD", 0)
    z = (rng.normal(size=(12_000, k)) * 2 * sharpness).astype(np.float32)
    p = softmax(z.astype(np.float64))
    y = ((p * (1 - noise) + noise / k).cumsum(axis=1) > rng.random((len(z), 1))).argmax(axis=1)
    passes = itertools.count()

    def start():
        next(passes)
        yield from ((z[i : i + 2500], y[i : i + 2500]) for i in range(0, len(z), 2500))

    fitted = make("ets").fit(calibrant.scan(start))
    assert next(passes) <= LIMITS["ets"]
    assert np.abs(fitted.predict_proba(z) - make("ets").fit(z, y).predict_proba(z)).max() <= 1e-5


def test_a_file_with_a_missing_column_or_a_nan_is_named(parts):
    pq.write_table(table(np.arange(5)).drop(["logits"]), parts / "part-9.parquet")
    with pytest.raises(CalibrantError, match="part-9"):
        make("ts").fit(calibrant.scan(parts, scores="logits", label="label"))
    Z2 = Z[:5].copy()
    Z2[3, 1] = np.nan
    bad = pa.table({"label": Y[:5], "logits": pa.array(Z2.tolist(), type=pa.list_(pa.float32()))})
    pq.write_table(bad, parts / "part-9.parquet")
    with pytest.raises(CalibrantError, match=r"row 3 of .*part-9"):
        make("ts").fit(calibrant.scan(parts, scores="logits", label="label"))


def test_files_of_different_dtypes_become_the_wider_one(parts):
    pq.write_table(table(np.arange(100), np.float64), parts / "part-9.parquet")
    fitted = make("ts").fit(calibrant.scan(parts, scores="logits", label="label"))
    assert fitted.n_samples_ == 6100


def test_apply_keeps_columns_and_leaves_the_old_output_when_it_fails(parts, tmp_path, monkeypatch):
    fitted = make("ets").fit(Z, Y)
    data = calibrant.scan(parts, scores="logits", label="label")
    calibrant.apply(fitted, data, to=tmp_path / "out")
    written = pq.read_table(tmp_path / "out")
    assert written.column_names == ["id", "label", "logits", "calibrated"]
    np.testing.assert_allclose(np.array(written["calibrated"].to_pylist()), fitted.predict_proba(Z), atol=1e-6)
    assert len(list((tmp_path / "out").iterdir())) == 5  # the file without rows too
    for error in (KeyboardInterrupt, OSError(28, "No space left on device")):
        written_before, calls = pq.ParquetWriter.write_batch, itertools.count()

        def fails(writer, batch, error=error, calls=calls, write=written_before):
            write(writer, batch)
            if next(calls) == 2:  # in the middle: two files are there already
                raise error

        with monkeypatch.context() as patched:
            patched.setattr(pq.ParquetWriter, "write_batch", fails)
            with pytest.raises((KeyboardInterrupt, CalibrantError)):
                calibrant.apply(make("ts").fit(Z, Y), data, to=tmp_path / "out")
        assert pq.read_table(tmp_path / "out").equals(written)
        assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_mapped_rows_are_measured_through_the_map(parts):
    fitted = make("ts").fit(Z, Y)
    data = calibrant.scan(parts, scores="logits", label="label")
    found = calibrant.measure(data.mapped(fitted), resamples=99)
    exact = calibrant.measure(Y, fitted.predict_proba(Z), resamples=99)
    assert found.metrics["ece"].estimate == pytest.approx(exact.metrics["ece"].estimate, abs=1e-6)


def test_statistics_travel_as_bytes():
    data = calibrant.scan(Z, label=Y)
    _, seen = data.looked("logits", None, "small", False)
    again = from_bytes(to_bytes(seen))
    assert again.rows == seen.rows
    np.testing.assert_array_equal(again.survey.sample.keys, seen.survey.sample.keys)
    with pytest.raises(CalibrantError, match="another version"):
        from_bytes(b"CALS\x09" + b"0" * 30)


def test_a_stream_that_can_be_read_once_is_refused_unless_spilled():
    with pytest.raises(CalibrantError, match="spill"):
        calibrant.scan(iter([(Z, Y)]))
    assert make("ts").fit(calibrant.scan(iter([(Z, Y)]), spill=True)).temperature_ == pytest.approx(PLAIN)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("kind", [".npz", ".npy", ".csv.gz", ".jsonl", ".parquet", ".arrow"])
def test_damaged_files_are_refused_or_read_in_blocks(tmp_path, kind):
    """No exception of others leaves a scan, and no damage ends the process."""
    readers = pytest.importorskip("fuzz.readers")
    rng, path = np.random.default_rng(0), tmp_path / f"rows{kind}"
    for _ in range(60):
        path.unlink(missing_ok=True)
        path.write_bytes(readers._damaged(rng, readers.whole(kind)))
        with contextlib.suppress(CalibrantError):
            make("ts").fit(calibrant.scan(path))


@pytest.mark.parametrize(
    ("batch", "named"),
    [
        ({"probs": softmax(Z), "logits": Z, "label": Y}, {"scores": "logits"}),
        ({"logits": Z, "label": Y[::-1], "truth": Y}, {"label": "truth"}),
        ({"label": Y, "logits": Z, "y": Y[::-1]}, {"scores": "logits", "label": "label"}),
        ({"logits_val": Z, "labels_val": Y, "logits_test": -Z, "labels_test": Y[::-1]}, {"part": "val"}),
    ],
)
def test_of_batches_with_names_the_user_says_which_count(batch, named):
    fitted = make("ts").fit(calibrant.scan(lambda: [batch], **named))
    np.testing.assert_allclose(fitted.temperature_, PLAIN, rtol=1e-5)


@pytest.mark.parametrize(
    ("batch", "named", "words"),
    [
        ({"logits": Z, "label": Y}, {"scores": "logit"}, "has no key 'logit'"),
        ({"logits": Z, "label": Y}, {"label": "truth"}, "has no key 'truth'"),
        ({"logits": Z, "label": Y}, {"weight": "w"}, "has no key 'w'"),
        ({"logits": Z, "probs": Z, "label": Y}, {}, "several scores; seen: logits, probs"),
        ({"logits": Z, "label": Y, "y": Y}, {}, "several labels; seen: label, y; hint: name the one: label="),
        ({"label": Y}, {}, "has no scores; seen: label"),
        (None, {}, "must return batches; seen: NoneType"),
        ((Z, Y), {"weight": "w"}, "is a tuple, whose parts have no names; seen: weight='w'"),
    ],
)
def test_names_that_batches_do_not_have_are_refused(batch, named, words):
    with pytest.raises(CalibrantError, match=words):
        make("ts").fit(calibrant.scan(lambda: None if batch is None else [batch], **named))


NAMES = ["zeta", "alpha", "mid", "beta"]


def frames():
    """Frames whose columns are not in the order of the alphabet."""
    columns = {f"logit_{name}": Z[:, i] for i, name in enumerate(NAMES)}
    whole = pa.table({**columns, "label": np.array(NAMES)[Y], "group": np.where(Y < 2, "a", "b")})
    return [whole.slice(first, 2000) for first in range(0, 6000, 2000)]


def test_a_stream_of_frames_that_is_spilled_keeps_the_names_of_its_columns():
    fitted = make("vector").fit(calibrant.scan(iter(frames()), scores="logit_", label="label", spill=True))
    assert fitted.classes_.tolist() == NAMES
    expected = make("vector").fit(Z, Y)
    np.testing.assert_allclose(fitted.predict_proba(Z[:50]), expected.predict_proba(Z[:50]), atol=1e-5)


def test_groups_are_spilled():
    batches = [{"logits": Z[i::2], "label": Y[i::2], "g": (Y < 2)[i::2]} for i in range(2)]
    for stream, named in ((frames(), {"scores": "logit_", "group": "group"}), (batches, {"group": "g"})):
        found = calibrant.measure(calibrant.scan(iter(stream), **named, spill=True), inputs="logits")
        assert len(found.groups) == 2


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        ([(Z[:9], Y[:9].astype(np.int32)), (Z[9:], Y[9:])], "the same columns of the same types; seen: .*in batch 1"),
        ([(Z[:9], Y[:9]), (Z[9:], Y[9:], np.ones(5991))], "the same columns of the same types"),
        ([frames()[0], frames()[1].drop_columns(["group"])], "batch 1 of the scan lacks columns of the first"),
        ([frames()[0], (Z, Y)], "batch 1 of the scan is no frame"),
        ([(Z[:2], np.array([1, "a"], dtype=object))], "cannot be spilled"),
    ],
)
def test_streams_that_cannot_be_spilled_are_refused(stream, words):
    with pytest.raises(CalibrantError, match=words):
        calibrant.scan(iter(stream), spill=True)


def test_a_stream_that_is_spilled_may_hold_narrower_numbers_later():
    stream = [(Z[:3000].astype(np.float64), Y[:3000]), (Z[3000:].astype(np.float64), Y[3000:].astype(np.int16))]
    fitted = make("ts").fit(calibrant.scan(iter(stream), spill=True))
    np.testing.assert_allclose(fitted.temperature_, PLAIN, rtol=1e-5)


def test_frames_without_rows_are_passed_over():
    empty = frames()[0].slice(0, 0)
    fitted = make("ts").fit(calibrant.scan(lambda: [empty, *frames(), empty], scores="logit_"))
    np.testing.assert_allclose(fitted.temperature_, PLAIN, rtol=1e-5)


@pytest.mark.parametrize("ordered", [[0, 1], [1, 0]])
def test_an_event_that_a_column_names_may_be_missing_from_a_batch(ordered, tmp_path):
    rng = np.random.default_rng(3)
    p = rng.random(3000)
    sick = rng.random(3000) < p**1.5
    room = tmp_path / "parts"
    room.mkdir()
    for number, i in enumerate(ordered):  # all rows of a file are well
        rows = np.flatnonzero(~sick)[:500] if i == 0 else np.setdiff1d(np.arange(3000), np.flatnonzero(~sick)[:500])
        labels = np.where(sick[rows], "sick", "well")
        pq.write_table(pa.table({"p_sick": p[rows], "label": labels}), room / f"{number}.parquet")
    expected = make("platt", inputs="probabilities").fit(p, sick)
    fitted = make("platt", inputs="probabilities").fit(calibrant.scan(room))
    assert fitted.classes_.tolist() == ["well", "sick"]
    np.testing.assert_allclose(fitted.predict_proba(p[:50]), expected.predict_proba(p[:50]), atol=1e-6)
    pq.write_table(pa.table({"p_well": 1 - p, "label": np.where(sick, "sick", "well")}), room / "9.parquet")
    twice = make("platt", inputs="probabilities").fit(calibrant.scan(room))
    expected = make("platt", inputs="probabilities").fit(np.append(p, p), np.append(sick, sick))
    np.testing.assert_allclose(twice.predict_proba(p[:50]), expected.predict_proba(p[:50]), atol=1e-6)


def test_an_event_against_several_others_is_told_by_the_labels_of_all_rows(tmp_path):
    rng = np.random.default_rng(4)
    p = rng.random(2000)
    sick = rng.random(2000) < p**1.5
    labels = np.where(sick, "sick", np.where(rng.random(2000) < 0.5, "well", "away"))
    room = tmp_path / "parts"
    room.mkdir()
    order = np.argsort(labels, kind="stable")  # away, sick, well
    for number, rows in enumerate(np.array_split(order, 4)):
        pq.write_table(pa.table({"p_sick": p[rows], "label": labels[rows]}), room / f"{number}.parquet")
    expected = make("platt", inputs="probabilities").fit(p, sick)
    fitted = make("platt", inputs="probabilities").fit(calibrant.scan(room))
    assert fitted.classes_.tolist() == [0, 1]
    np.testing.assert_allclose(fitted.predict_proba(p[:50]), expected.predict_proba(p[:50]), atol=1e-6)
    pq.write_table(pa.table({"p_well": 1 - p, "label": labels}), room / "9.parquet")
    with pytest.raises(CalibrantError, match="differ in the event"):
        make("platt", inputs="probabilities").fit(calibrant.scan(room))


def test_columns_whose_names_are_of_several_types():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)))
    frame["label"] = frame[[0, 1, 2]].to_numpy().argmax(axis=1)
    frame.loc[:20, "label"] = 1
    plain = calibrant.make("ts").fit(frame[[0, 1, 2]].to_numpy(), frame["label"].to_numpy())
    told = calibrant.make("ts").fit(calibrant.scan(frame, scores=["0", "1", "2"], label="label"))
    assert told.temperature_ == pytest.approx(plain.temperature_, rel=1e-6)


@pytest.mark.parametrize("beside", ["label", "weight"])
def test_sparse_tensors_beside_scores_are_refused(beside):
    torch = pytest.importorskip("torch")
    given = {"label": np.arange(60) % 3, beside: torch.ones(60).to_sparse()}
    with pytest.raises(CalibrantError, match=r"[Ss]parse"):
        calibrant.make("identity").fit(calibrant.scan(3.0 * np.eye(3)[np.arange(60) % 3], **given))
    dense = calibrant.scan(3.0 * np.eye(3)[np.arange(60) % 3], label=torch.arange(60) % 3)
    assert calibrant.make("identity").fit(dense).n_samples_ == 60
