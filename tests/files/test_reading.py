"""Every format says the same, the kind is never guessed, and every fault is named."""

import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import overconfident

import calibrant
from calibrant import files
from calibrant.errors import FileProblem, InvalidInput, MissingExtra
from calibrant.files.roles import role_of, score_prefix

LOGITS, LABELS = overconfident(30, 3)
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)


def _csv(path: Path, header: str, *columns: Any) -> Path:
    rows = "\n".join(",".join(str(v) for v in row) for row in zip(*columns, strict=True))
    path.write_text(f"{header}\n{rows}\n")
    return path


def _write(path: Path) -> None:
    arrays = {"logits": LOGITS, "labels": LABELS}
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".npy":
        np.save(path, LOGITS)
        np.save(path.with_name("labels.npy"), LABELS)
    elif path.suffix == ".safetensors":
        from safetensors.numpy import save_file

        save_file(arrays, path)
    else:
        _write_table(path)


def _write_table(path: Path) -> None:
    columns = {f"logit_{name}": LOGITS[:, i] for i, name in enumerate("abc")} | {"label": LABELS}
    if path.suffix in (".csv", ".tsv"):
        header = ",".join(columns)
        _csv(path, header, *(v.tolist() for v in columns.values()))
        path.write_text(path.read_text().replace(",", "\t") if path.suffix == ".tsv" else path.read_text())
        return
    if path.suffix == ".jsonl":
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        path.write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows))
        return
    pa = pytest.importorskip("pyarrow")
    table = pa.table(columns)
    if path.suffix == ".parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, path)
    else:
        import pyarrow.feather

        pyarrow.feather.write_feather(table, str(path))


@pytest.mark.parametrize("ending", ["npz", "npy", "csv", "tsv", "jsonl", "parquet", "arrow", "feather", "safetensors"])
def test_every_format_says_the_same(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"logits.{ending}"
    _write(path)
    labels = str(path.with_name("labels.npy")) if ending == "npy" else None
    data = files.read(path, labels=labels)
    assert data.kind == "logits"
    assert (data.fit.scores == LOGITS).all()
    assert (data.labels(data.fit) == LABELS).all()
    assert data.test is None
    assert data.classes.tolist() == [0, 1, 2]


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for ending in ("npz", "csv", "jsonl", "parquet"):
        path = tmp_path / f"x.{ending}"
        _write(path)
        for data in (path.read_bytes(), gzip.compress(path.read_bytes())):
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
            assert (files.read("-").fit.scores == LOGITS).all()


@pytest.mark.parametrize("ending", ["npz", "csv", "jsonl"])
def test_packed_files(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{ending}"
    _write(path)
    packed = tmp_path / f"x.{ending}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert (files.read(packed).fit.scores == LOGITS).all()
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(FileProblem, match="damaged"):
        files.read(packed)


def test_labels_of_npy_are_never_guessed(tmp_path: Path) -> None:
    np.save(tmp_path / "logits.npy", LOGITS)
    np.save(tmp_path / "y.npy", LABELS)
    np.save(tmp_path / "labels.npy", LABELS)
    data = files.read(tmp_path / "logits.npy")
    with pytest.raises(InvalidInput, match=r"--labels; for \.npy it is another file"):
        data.labels(data.fit)
    named = files.read(tmp_path / "logits.npy", labels=str(tmp_path / "y.npy"))
    assert (named.labels(named.fit) == LABELS).all()


def test_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    rows = "\n".join(";".join(str(v).replace(".", ",") for v in row) for row in zip(*PROBS.T.tolist(), strict=True))
    (tmp_path / "a.csv").write_text(f"p_a;p_b;p_c\n{rows}\n")
    np.testing.assert_array_equal(files.read(tmp_path / "a.csv").fit.scores, PROBS)
    (tmp_path / "b.csv").write_text('p_a,p_b,y\n"0,5",0.5,0\n0.25,0.75,1\n')  # a comma between cells is none in them
    with pytest.raises(InvalidInput, match="p_a must hold numbers; seen: '0,5' in line 2"):
        files.read(tmp_path / "b.csv")
    (tmp_path / "c.csv").write_text('"a, b and c";p_a;p_b\nx;0,5;0,5\n')
    assert files.read(tmp_path / "c.csv").fit.scores.tolist() == [[0.5, 0.5]]


def test_percentages_when_told_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("p_a,p_b,p_c\n33,33,33\n20,30,50\n")
    with pytest.raises(InvalidInput, match="percentages must be divided by 100"):
        files.read(tmp_path / "a.csv")
    told = files.read(tmp_path / "a.csv", percent=True).fit.scores
    np.testing.assert_allclose(told, [[1 / 3, 1 / 3, 1 / 3], [0.2, 0.3, 0.5]])
    (tmp_path / "b.csv").write_text("p_a;p_b\n12,5 %;87,5%\n0%;100 %\n")
    np.testing.assert_allclose(files.read(tmp_path / "b.csv").fit.scores, [[0.125, 0.875], [0, 1]])
    np.testing.assert_allclose(files.read(tmp_path / "b.csv", percent=True).fit.scores, [[0.125, 0.875], [0, 1]])
    (tmp_path / "c.csv").write_text("p_a,p_b\n12%,88%\n0.5,0.5\n")
    with pytest.raises(InvalidInput, match=r"'0\.5' in line 3"):
        files.read(tmp_path / "c.csv")
    (tmp_path / "d.csv").write_text("p_a,p_b\n30,50\n20,80\n")
    with pytest.raises(InvalidInput, match=r"line 2 .* sum 0\.8"):
        files.read(tmp_path / "d.csv", percent=True)
    np.savez(tmp_path / "e.npz", confidence=np.array([90.0, 10.0]), y=[1, 0])
    np.testing.assert_allclose(files.read(tmp_path / "e.npz", percent=True).fit.scores, [0.9, 0.1])
    np.savez(tmp_path / "f.npz", logits=LOGITS, y=LABELS)
    with pytest.raises(InvalidInput, match="no percentages"):
        files.read(tmp_path / "f.npz", percent=True)


def test_lists_and_objects_in_jsonl(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"probs": [0.2, 0.8], "label": 1}\n\n{"probs": [0.5, 0.5], "label": 0}\n')
    assert files.read(path).fit.scores.tolist() == [[0.2, 0.8], [0.5, 0.5]]
    path.write_text('{"probs": {"b": 0.2, "a": 0.8}, "label": "a"}\n{"probs": {"a": 0.5, "b": 0.5}, "label": "b"}\n')
    data = files.read(path)
    assert data.fit.scores.tolist() == [[0.2, 0.8], [0.5, 0.5]]
    assert data.class_names == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"probs": [0.2, 0.8]}\n\n{"probs": [0.5]}\n', "line 3"),
        ('{"p_a": 0.2, "p_b": 0.8}\n{"p_a": 0.5}\n', "p_b is missing; seen: line 2"),
        ('{"p_a": 0.2, "p_b": 0.8}\n{"p_a": 0.5, "p_b": 0.6}\n', "line 2 from 0.5"),
        ('{"p_a": 0.2\n', "line 1 is not JSON"),
        ("[1, 2]\n", "line 1 is no JSON object"),
        ("\n\n", "empty"),
    ],
)
def test_broken_jsonl(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises((FileProblem, InvalidInput), match=words):
        files.read(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p_a,p_b,y\n\n0.5,0.5,0\n0.5,0.6,1\n", "line 4 from 0.5"),
        ('p_a,p_b,y,note\n0.5,0.5,a,"two\nlines"\n0.5,0.5,c,x\n', "'c' in line 4"),
        ("p_a,p_b,y,weights\n0.5,0.5,0,1\n0.5,0.5,1,-2\n", "-2 in line 3"),
        ("p_a,p_b,y,split\n0.5,0.5,0,test\n0.5,0.5,1,val\n0.5,0.7,1,test\n", "line 4 from 0.5"),
        ("p_a,p_b,y,split\n0.5,0.5,a,test\n0.5,0.5,b,val\n0.5,0.5,c,test\n", "'c' in line 4"),
    ],
)
def test_lines_are_counted_as_an_editor_does(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InvalidInput, match=words):
        files.read(tmp_path / "a.csv")


def test_coarse_types_of_tensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    held = {"probs": torch.tensor(PROBS).bfloat16(), "labels": torch.tensor(LABELS)}
    assert (held["probs"].double().sum(dim=1) - 1).abs().max() > 1e-3
    save_file({**held, "other": torch.ones(2).to(torch.float8_e5m2)}, tmp_path / "a.safetensors")
    torch.save(held, tmp_path / "a.pt")
    for name in ("a.safetensors", "a.pt"):
        data = files.read(tmp_path / name, allow_torch=True)
        assert data.fit.scores.dtype == np.float32
        np.testing.assert_allclose(data.fit.scores, PROBS, rtol=1e-2)
        np.testing.assert_allclose(data.fit.scores.sum(axis=1), 1, rtol=1e-6)
    save_file({"probs": torch.ones(2, 2).to(torch.float8_e5m2)}, tmp_path / "b.safetensors")
    with pytest.raises(FileProblem, match="a type NumPy lacks"):
        files.read(tmp_path / "b.safetensors")


def test_a_split_is_understood(tmp_path: Path) -> None:
    half = {"logits_val": LOGITS[:10], "labels_val": LABELS[:10], "logits_train": LOGITS, "labels_train": LABELS}
    np.savez(tmp_path / "a.npz", **half, test_logits=LOGITS[10:], test_y=LABELS[10:], season=LABELS)
    data = files.read(tmp_path / "a.npz")
    assert len(data.fit) == 10
    assert data.test is not None
    assert len(data.test) == 20
    assert set(data.unused) == {"logits_train", "labels_train", "season"}
    assert len(files.read(tmp_path / "a.npz", part="train").fit) == 30


def test_several_sets_are_kept_apart(tmp_path: Path) -> None:
    event = PROBS[:, 0]
    np.savez(
        tmp_path / "a.npz", m1_confidence=event, m1_correct=LABELS == 0, m2_confidence=event, m2_correct=LABELS == 0
    )
    data = files.read(tmp_path / "a.npz")
    assert list(data.parts) == ["m1", "m2"]
    assert data.test is None
    assert list(files.read(tmp_path / "a.npz", part="m2").parts) == ["m2"]


def test_the_kind_is_said_never_guessed(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", scores=LOGITS, y=LABELS)
    with pytest.raises(InvalidInput, match="--kind"):
        files.read(tmp_path / "a.npz")
    assert files.read(tmp_path / "a.npz", kind="logits").kind == "logits"
    with pytest.raises(InvalidInput, match="announced as probabilities"):
        files.read(tmp_path / "a.npz", kind="probs")
    np.savez(tmp_path / "b.npz", logits=LOGITS, y=LABELS)
    with pytest.raises(InvalidInput, match="--kind says"):
        files.read(tmp_path / "b.npz", kind="probs")
    np.savez(tmp_path / "c.npz", logits=PROBS, y=LABELS)
    with pytest.raises(InvalidInput, match=r"c\.npz: logits were announced as logits"):
        files.read(tmp_path / "c.npz")
    with pytest.raises(InvalidInput, match="kind is not known"):
        files.read(tmp_path / "c.npz", kind="odds")


def test_one_of_two_scores_is_chosen(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", logits=LOGITS, probs=PROBS, y=LABELS)
    with pytest.raises(InvalidInput, match="several scores"):
        files.read(tmp_path / "a.npz")
    assert files.read(tmp_path / "a.npz", kind="probs").kind == "probabilities"
    assert files.read(tmp_path / "a.npz", scores="logits").kind == "logits"


def test_other_names_by_option(tmp_path: Path) -> None:
    extra = {"w": np.ones(30), "site": LABELS, "e": LOGITS}
    np.savez(tmp_path / "a.npz", out=LOGITS, truth=LABELS, **extra)
    data = files.read(
        tmp_path / "a.npz", kind="logits", scores="out", labels="truth", weights="w", groups="site", embeddings="e"
    )
    assert data.fit.keys == {"scores": "out", "labels": "truth", "embeddings": "e", "weights": "w", "groups": "site"}


@pytest.mark.parametrize("wanted", ["p_", "p_*", "p_cat,p_dog,p_<b>"])
def test_columns_by_prefix_pattern_and_list(wanted: str, tmp_path: Path) -> None:
    names = np.array(["cat", "dog", "<b>"])
    path = _csv(tmp_path / "a.csv", "p_cat,p_dog,p_<b>,truth", *PROBS.T.tolist(), names[LABELS])
    if "," in wanted:  # a list fixes no prefix, so the columns are the classes
        names = np.array(["p_cat", "p_dog", "p_<b>"])
        path = _csv(path, "p_cat,p_dog,p_<b>,truth", *PROBS.T.tolist(), names[LABELS])
    data = files.read(path, scores=wanted, labels="truth")
    assert data.kind == "probabilities"
    assert data.class_names == names.tolist()
    assert (np.searchsorted(np.sort(names), data.labels(data.fit)) >= 0).all()
    assert data.classes.tolist() == names.tolist()


def test_a_pattern_with_a_suffix_names_the_classes(tmp_path: Path) -> None:
    path = _csv(tmp_path / "a.csv", "cat_prob,dog_prob,hen_prob,y", *PROBS.T.tolist(), LABELS)
    data = files.read(path, scores="*_prob", kind="probs")
    assert data.class_names == ["cat", "dog", "hen"]
    assert data.plain_classes


def test_numbered_columns_are_names_not_positions(tmp_path: Path) -> None:
    path = _csv(tmp_path / "a.csv", "logit_10,logit_2,logit_7,label", *LOGITS.T.tolist(), np.array([10, 2, 7])[LABELS])
    assert files.read(path).classes.tolist() == [10, 2, 7]
    path = _csv(tmp_path / "b.csv", "logit_2,logit_0,logit_1,label", *LOGITS.T.tolist(), np.array([2, 0, 1])[LABELS])
    assert files.read(path).classes.tolist() == [2, 0, 1]


def test_one_column_is_the_event(tmp_path: Path) -> None:
    path = _csv(tmp_path / "a.csv", "prob,y", PROBS[:, 0].tolist(), (LABELS == 0).tolist())
    data = files.read(path)
    assert data.fit.scores.shape == (30,)
    assert data.plain_classes
    assert len(data.classes) == 2


def test_a_split_column_divides_the_rows(tmp_path: Path) -> None:
    where = ["validation"] * 10 + ["test"] * 20
    path = _csv(tmp_path / "a.csv", "logit_0,logit_1,logit_2,y,split", *LOGITS.T.tolist(), LABELS, where)
    data = files.read(path)
    assert len(data.fit) == 10
    assert data.test is not None
    assert len(data.test) == 20


def test_list_columns_of_parquet(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"logits": LOGITS.tolist(), "label": LABELS}), tmp_path / "a.parquet")
    assert (files.read(tmp_path / "a.parquet").fit.scores == LOGITS).all()
    pq.write_table(pa.table({"logits": [[1.0, 2.0], [1.0]], "label": [0, 1]}), tmp_path / "b.parquet")
    with pytest.raises(InvalidInput, match="different lengths; seen: row 1"):
        files.read(tmp_path / "b.parquet")
    pq.write_table(pa.table({"logit_0": [1.0, None], "logit_1": [1.0, 2.0], "y": [0, 1]}), tmp_path / "c.parquet")
    with pytest.raises(InvalidInput, match="logit_0 has missing values; seen: row 1"):
        files.read(tmp_path / "c.parquet")


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "a.parquet")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtra, match=r"calibrant\[parquet\]"):
        files.read(tmp_path / "a.parquet")


def test_torch_files_are_read_by_opt_in(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    z, y = overconfident(40, 3)
    held = {"val_logits": torch.tensor(z[:20]).requires_grad_(), "val_labels": torch.tensor(y[:20]), "epoch": 3}
    held |= {"test_logits": torch.tensor(z[20:]), "test_labels": torch.tensor(y[20:]), "note": "as trained"}
    torch.save(held, tmp_path / "a.pt")
    found = files.read(tmp_path / "a.pt", allow_torch=True)
    assert found.kind == "logits"
    assert list(found.parts) == ["val", "test"]
    np.testing.assert_array_equal(found.fit.scores, z[:20])
    np.testing.assert_array_equal(found.judged.labels, y[20:])
    torch.save({"logits": torch.tensor(z).bfloat16(), "labels": torch.tensor(y)}, tmp_path / "b.pth")
    half = files.read(tmp_path / "b.pth", allow_torch=True)
    assert half.fit.scores.dtype == np.float32
    np.testing.assert_allclose(half.fit.scores, z, rtol=1e-2)


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (lambda t, z, y: [t.tensor(z), t.tensor(y)], "no dict of tensors; seen: list"),
        (lambda t, z, y: {"logits": t.tensor(z).to_sparse(), "labels": t.tensor(y)}, "logits is not a dense tensor"),
        (lambda t, z, y: {"logits": t.tensor(z), "labels": t.tensor(y), "path": Path("x")}, r"objects of pathlib\S*;"),
        (lambda t, z, y: {"weight": t.tensor(z)}, "no scores"),
    ],
)
def test_torch_files_that_are_refused(tmp_path: Path, held: Callable[..., Any], words: str) -> None:
    torch = pytest.importorskip("torch")
    z, y = overconfident(40, 3)
    torch.save(held(torch, z, y), tmp_path / "a.pt")
    with pytest.raises((FileProblem, InvalidInput), match=words) as caught:
        files.read(tmp_path / "a.pt", allow_torch=True)
    assert "weights_only" not in str(caught.value)


def test_torch_files_only_by_opt_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.pt").write_bytes(b"PK\x03\x04")
    with pytest.raises(FileProblem, match="--allow-torch"):
        files.read(tmp_path / "a.pt")
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MissingExtra, match="torch"):
        files.read(tmp_path / "a.pt", allow_torch=True)


def test_class_names_from_a_key(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", logits=LOGITS, y=LABELS, classes=np.array(["x", "y", "z"]))
    data = files.read(tmp_path / "a.npz")
    assert data.class_names == ["x", "y", "z"]
    assert data.plain_classes
    np.savez(tmp_path / "b.npz", logits=LOGITS, y=LABELS, classes=np.array(["x", "y"]))
    with pytest.raises(InvalidInput, match="2 names for 3 columns"):
        files.read(tmp_path / "b.npz")


def test_objects_are_refused_and_not_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {tmp_path}/pwned",)

    bad = np.array([Evil()], dtype=object)
    np.save(tmp_path / "logits.npy", bad, allow_pickle=True)
    np.savez(tmp_path / "a.npz", logits=bad, labels=LABELS[:1])
    for name in ("logits.npy", "a.npz"):
        with pytest.raises(FileProblem, match="pickle"):
            files.read(tmp_path / name)
    assert not (tmp_path / "pwned").exists()


def _npz(**arrays: Any) -> Any:
    return lambda path: np.savez(path, **arrays)


_BROKEN: dict[str, tuple[str, Any, str]] = {
    "NaN": ("a.npz", _npz(logits=np.where(np.arange(30)[:, None] == 17, np.nan, LOGITS), y=LABELS), "row 17"),
    "lengths": ("a.npz", _npz(logits=LOGITS, y=LABELS[:-1]), "logits and y .*30 and 29"),
    "no scores": ("a.npz", _npz(x=LOGITS, y=LABELS), "no scores"),
    "two labels": ("a.npz", _npz(logits=LOGITS, y=LABELS, labels=LABELS), "several labels"),
    "text scores": ("a.npz", _npz(logits=LOGITS.astype(str), y=LABELS), "must hold numbers"),
    "text weights": ("a.npz", _npz(logits=LOGITS, y=LABELS, weights=LABELS.astype(str)), "weights must hold numbers"),
    "bad embeddings": ("a.npz", _npz(logits=LOGITS, y=LABELS, embeddings=LOGITS * np.nan), "embeddings contains NaN"),
    "label outside": ("a.npz", _npz(logits=LOGITS, y=np.where(np.arange(30) == 4, 11, LABELS)), "y does not fit"),
    "cell": ("a.csv", lambda p: p.write_text("logit_0,logit_1,y\n1,2,0\n3,x,1\n"), "logit_1 .*'x' in line 3"),
    "empty cell": ("a.csv", lambda p: p.write_text("logit_0,logit_1,y\n1,,0\n3,4,1\n"), "empty cell in line 2"),
    "short row": ("a.csv", lambda p: p.write_text("logit_0,logit_1,y\n1,2,0\n3,4\n"), "line 3 has the wrong number"),
    "header only": ("a.csv", lambda p: p.write_text("logit_0,logit_1,y\n"), "no rows"),
    "twice": ("a.csv", lambda p: p.write_text("logit_0,logit_0,y\n1,2,0\n"), "two columns"),
    "no column": ("a.csv", lambda p: p.write_text("a,b,y\n1,2,0\n"), "no scores"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(_BROKEN))
def test_faults_in_the_data_are_named(name: str, tmp_path: Path) -> None:
    file, write, message = _BROKEN[name]
    write(tmp_path / file)
    with pytest.raises(InvalidInput, match=message) as caught:
        files.read(tmp_path / file)
    assert file in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("none.npz", None),
        ("a.npz", b""),
        ("a.npz", b"PK\x03\x04 broken"),
        ("a.npz", b"plain text"),
        ("logits.npy", b"\x93NUMPY\x01\x00"),
        ("logits.npy", b"\x80\x04\x95pickle"),
        ("a.csv", b"\xff\xfe\x00\x01"),
        ("a.csv", b'logit_0,logit_1,y\n"1,2,0\n'),
        ("a.parquet", b"PAR1 no more"),
        ("a.arrow", b"ARROW1 no more"),
        ("a.safetensors", b"\x08\x00\x00\x00\x00\x00\x00\x00notjson!"),
        ("a.pkl", b"\x80\x04."),
        ("a.xyz", b"1"),
    ],
)
def test_files_that_cannot_be_understood_are_named(name: str, content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(FileProblem, match=name.replace(".", r"\.")):
        files.read(tmp_path / name)


def test_a_cut_npz_is_noticed_anywhere(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", logits=LOGITS, labels=LABELS)
    data = (tmp_path / "a.npz").read_bytes()
    for keep in range(1, len(data), 37):
        (tmp_path / "a.npz").write_bytes(data[:keep])
        with pytest.raises(FileProblem):
            files.read(tmp_path / "a.npz")


def test_names() -> None:
    assert role_of("y_true_test") == ("labels", "test")
    assert role_of("sample_weight") == ("weights", "")
    assert score_prefix("prob.cat") == ("prob.", "probabilities")
    assert score_prefix("p7") == ("p", "probabilities")
    assert score_prefix("place") is None


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        (["--5", "3"], ["--5", "3"]),
        (["1", "²"], ["1", "²"]),
        (["01", "1"], ["01", "1"]),  # two names, not one number
        (["007", "008"], ["007", "008"]),
        (["9" * 5000, "1"], ["1", "9" * 5000]),
        (["1", "0"], [0, 1]),
    ],
)
def test_labels_are_numbers_where_written_as_such(tmp_path: Path, written: list[str], read_as: list[Any]) -> None:
    rows = "".join(f"{i % 7},{i % 5},{written[i % 2]}\n" for i in range(20))
    (tmp_path / "rows.csv").write_text("score_0,score_1,label\n" + rows, encoding="utf-8")
    assert files.read(tmp_path / "rows.csv", kind="logits").classes.tolist() == read_as


def test_a_scan_names_the_line_of_a_label_that_is_missing(tmp_path: Path) -> None:
    rows = "".join(f"{i % 7},{i % 5},{'' if i == 11 else i % 2}\n" for i in range(20))
    (tmp_path / "rows.csv").write_text("logit_0,logit_1,label\n" + rows)
    with pytest.raises(InvalidInput, match=r"missing labels; seen: None in line 13 of"):
        calibrant.make("ts").fit(calibrant.scan(tmp_path / "rows.csv"))


def _odd_tables() -> dict[str, Any]:
    """Arrow tables whose scores or labels are of a type that none of ours have."""
    pa = pytest.importorskip("pyarrow")
    columns = {f"logit_{name}": pa.array(LOGITS[:, i]) for i, name in enumerate("abc")}
    labels = pa.array(["abc"[label] for label in LABELS])
    dates = pa.array([0] * len(LABELS), pa.timestamp("s"))
    union = pa.UnionArray.from_sparse(pa.array([0] * len(LABELS), pa.int8()), [labels])
    return {
        "dates": pa.table({**columns, "logit_a": dates, "label": labels}),
        "durations": pa.table({**columns, "logit_a": dates.cast("i8").cast(pa.duration("s")), "label": labels}),
        "union": pa.table({**columns, "label": union}),
        "one name twice": pa.Table.from_arrays(
            [*columns.values(), labels], names=["logit_a", "logit_a", "logit_b", "label"]
        ),
    }


@pytest.mark.parametrize("name", ["dates", "durations", "union", "one name twice"])
def test_columns_of_odd_types_are_refused_in_words(name: str, tmp_path: Path) -> None:
    table = _odd_tables()[name]
    import pyarrow as pa

    with pa.OSFile(str(tmp_path / "rows.arrow"), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InvalidInput, match="column"):
        files.read(tmp_path / "rows.arrow")
    with pytest.raises(InvalidInput, match="column"):
        calibrant.make("ts").fit(calibrant.scan(table))


def test_a_label_that_is_an_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"logits": [1, 2, 3], "label": 1}\n{"logits": [3, 2, 1], "label": {}}\n')
    with pytest.raises(InvalidInput):
        files.read(tmp_path / "rows.jsonl")
