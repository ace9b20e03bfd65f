"""The code of the pages runs as pasted, given the data that a page speaks of."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant.arrays import softmax
from calibrant.files import roles

DOCS = Path(__file__).resolve().parents[1] / "docs"
ELSEWHERE = {"monitoring", "recipes"}  # tests/monitoring/test_page.py, tests/exports/test_recipes.py


def blocks(page, kind):
    return re.findall(rf"```{kind}\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), flags=re.S)


def pages_with(kind):
    paths = [*DOCS.glob("*.md"), *DOCS.glob("methods/*.md")]
    told = sorted(path.relative_to(DOCS).with_suffix("").as_posix() for path in paths)
    return [page for page in told if blocks(page, kind)]


def outputs(rows=400, classes=3, seed=0):
    """Logits that are too sure of themselves, and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(rows, classes))
    return 3 * truth, (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)


def what_pages_speak_of(page):
    """The names that a page takes as given: outputs of a model, and what its rows belong to."""
    classes = 4 if page == "metrics" else 3
    z, y = outputs(400, classes)
    new, later = outputs(200, classes, seed=1)
    p = softmax(z)
    given = {"calibrant": calibrant, "np": np, "logits": z, "y": y, "new_logits": new, "new_scores": new, "scores": z}
    given |= {"y_true": y, "y_prob": p, "p": p, "embeddings": z, "train_embeddings": new, "train_y": later}
    given |= {"new": new, "more": new[:50], "more_y": later[:50], "batches": [(y[:200], p[:200]), (y[200:], p[200:])]}
    given |= {"other": calibrant.metrics.state("ece_sweep").update(y, p), "calibrator": calibrant.make("ts").fit(z, y)}
    if page.startswith("methods/"):
        pandas = pytest.importorskip("pandas")
        rng = np.random.default_rng(2)
        names = ["sex", "age_band", "ward"]
        people, others = (pandas.DataFrame(rng.integers(0, 2, size=(n, 3)), columns=names) for n in (400, 200))
        frame = pandas.DataFrame(z, columns=["logit_0", "logit_1", "logit_2"]).assign(ward=people["ward"])
        given |= {"people": people, "new_frame": others, "ward": people["ward"], "new_ward": others["ward"]}
        given |= {"frame": frame}
    return given


def lay_files():
    """The files that commands of the pages name."""
    z, y = outputs()
    np.savez("outputs.npz", logits=z[:120], labels=y[:120])
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    Path("outputs").mkdir()
    for part in range(2):
        rows = slice(200 * part, 200 * part + 200)
        table = pyarrow.table({"logits": list(z[rows]), "label": y[rows]})
        parquet.write_table(table, f"outputs/part-{part}.parquet")
    lines = [f"{p:.3f},{int(p > 0.6)},{i % 4},{'ab'[i % 2]}" for i, p in enumerate(softmax(z)[:, 0])]
    Path("2026-04.csv").write_text("\n".join(["probs,labels,day,hospital", *lines]), encoding="utf-8")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", [page for page in pages_with("python") if page not in ELSEWHERE])
def test_the_code_runs_as_pasted(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = what_pages_speak_of(page)
    if page == "scale":
        lay_files()
    if page == "training":
        torch = pytest.importorskip("torch")
        given |= {"net": torch.nn.Linear(4, 10), "batch": torch.randn(8, 4), "targets": torch.arange(8)}
    for code in blocks(page, "python"):
        exec(compile(code, page, "exec"), given)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(find_spec("click") is None, reason="needs calibrant[cli]")
@pytest.mark.parametrize("page", pages_with("sh"))
def test_the_commands_run_as_pasted(page, tmp_path, monkeypatch, capsys):
    from calibrant.cli.main import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    lay_files()
    for line in "".join(blocks(page, "sh")).splitlines():
        program, *words = shlex.split(line, comments=True)
        if program == "calibrant" and words[0] != "report":  # five seconds, and what `calibrant demo` does
            assert main(words) == (1 if "--fail-if" in words else 0), capsys.readouterr().err


def test_the_page_of_files_tells_every_name_that_is_known():
    page = (DOCS / "files.md").read_text(encoding="utf-8")
    assert [word for words in roles._ROLES.values() for word in words if f"`{word}`" not in page] == []
