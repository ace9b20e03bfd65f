"""Files with several labels a row, and pairs of confidence and correctness by prompt."""

import json

import numpy as np
import pytest

from calibrant import measure
from calibrant.cli.main import main


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(300, 3)) - 0.5
    y = (rng.random((300, 3)) < 1 / (1 + np.exp(-logits))).astype(float)
    y[rng.random((300, 3)) < 0.1] = np.nan
    return logits, y, np.array([f"p{i}" for i in rng.integers(0, 60, 300)])


def told(arguments, capsys):
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)["parts"][""]


def written(tmp_path, rows, form):
    """The columns of labels come in another order than those of the scores."""
    logits, y, patients = rows
    p, names = 1 / (1 + np.exp(-logits)), ("cough", "fever", "rash")
    path = tmp_path / f"rows.{form}"
    if form == "npz":
        np.savez(path, probs=p, labels=y, clusters=patients)
    elif form == "jsonl":
        lines = [
            {"probs": list(said), "labels": [None if np.isnan(v) else v for v in seen], "clusters": one}
            for said, seen, one in zip(p, y, patients, strict=True)
        ]
        path.write_text("\n".join(map(json.dumps, lines)))
    elif form == "csv":
        head = [*(f"p_{n}" for n in names), *(f"y_{n}" for n in names[::-1]), "cluster"]
        cells = [
            [*map(repr, said.tolist()), *("" if np.isnan(v) else str(int(v)) for v in seen[::-1]), one]
            for said, seen, one in zip(p, y, patients, strict=True)
        ]
        path.write_text("\n".join(",".join(row) for row in [head, *cells]))
    else:
        table = pytest.importorskip("pyarrow").table(
            {f"p_{n}": p[:, k] for k, n in enumerate(names)}
            | {f"y_{n}": [None if np.isnan(v) else int(v) for v in y[:, k]] for k, n in reversed([*enumerate(names)])}
            | {"cluster": patients}
        )
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    return path


@pytest.mark.parametrize("form", ["npz", "jsonl", "csv", "parquet"])
def test_every_format_says_what_python_says(tmp_path, rows, form, capsys):
    logits, y, patients = rows
    found = told(["measure", written(tmp_path, rows, form), "--profile", "multilabel"], capsys)
    wanted = measure(y, 1 / (1 + np.exp(-logits)), clusters=patients, profile="multilabel")
    assert (found["rows"], found["classes"]) == (300, 3)
    for name, interval in wanted.metrics.items():
        assert found["metrics"][name]["value"] == pytest.approx(interval.estimate)
        assert found["metrics"][name]["low"] == pytest.approx(interval.low)
    by_label = [label["auroc"]["estimate"] for label in found["labels"]["labels"].values()]
    assert by_label == pytest.approx([label["auroc"].estimate for label in wanted.labels.labels.values()])
    assert found["labels"]["missing"] == int(np.isnan(y).sum())


def test_logits_of_events_are_no_softmax(tmp_path, rows, capsys):
    logits, y, _ = rows
    np.savez(tmp_path / "rows.npz", logits=logits, labels=y)
    found = told(["measure", tmp_path / "rows.npz", "--profile", "multilabel"], capsys)
    wanted = measure(y, 1 / (1 + np.exp(-logits)), profile="multilabel")
    assert found["metrics"]["brier"]["value"] == pytest.approx(wanted.metrics["brier"].estimate)


def test_the_page_of_several_labels_has_them(tmp_path, rows, capsys):
    page = tmp_path / "page.html"
    given = written(tmp_path, rows, "csv")
    assert main(["report", str(given), "--profile", "multilabel", "-o", str(page), "-q"]) == 0
    assert all(name in page.read_text() for name in ("By label", "cough", "fever", "rash"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p_a,p_b,y_a,y_b\n0.5,0.5,1,perhaps\n", "'perhaps' in line 2"),
        ("p_a,p_b,y_a,y_b\n0.5,0.5,1,2\n", "no outcome"),
        ("p_a,p_b,y_a\n0.5,0.5,1\n", "a column of outcomes for each"),
        ("p_a,p_b,u,v\n0.5,0.5,1,0\n", "--labels"),
        ("p_a,p_b,y_a,label_a\n0.5,0.5,1,0\n", "--labels"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, words, capsys):
    (tmp_path / "a.csv").write_text(text)
    assert main(["measure", str(tmp_path / "a.csv"), "--profile", "multilabel"]) == 3
    assert words in capsys.readouterr().err


def test_confidence_of_a_language_model_by_prompt_and_subject(tmp_path, capsys):
    rng = np.random.default_rng(1)
    said = rng.choice(np.arange(0, 101, 10), 600)
    seen = (rng.random(600) < 0.8 * said / 100).astype(int)
    prompts, subjects = [f"q{i // 6}" for i in range(600)], [f"s{i % 3}" for i in range(600)]
    lines = [f"{c},{y},{q},{s}" for c, y, q, s in zip(said, seen, prompts, subjects, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["confidence,correct,prompt,subject", *lines]))
    how = ["measure", tmp_path / "a.csv", "--percent", "--clusters", "prompt", "--groups", "subject"]
    found = told(how, capsys)
    wanted = measure(seen, said / 100, clusters=prompts, groups=subjects)
    assert found["metrics"]["ece"]["high"] == pytest.approx(wanted.metrics["ece"].high)
    assert [row["name"] for row in found["groups"]["rows"]] == sorted({*subjects})
