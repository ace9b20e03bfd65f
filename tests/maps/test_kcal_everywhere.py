"""KCal beside the other maps: the registry, comparisons, chains, files and the command line."""

import json

import numpy as np
import pytest

import calibrant
from calibrant import KCal, compare, make
from calibrant.cli.main import main
from calibrant.errors import InvalidInput
from calibrant.testing.embeddings import cloud

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
pytest.importorskip("torch")


@pytest.fixture
def file(tmp_path):
    data = cloud(240, 3, 5)
    scores = np.random.default_rng(1).normal(size=(240, 3)) + np.eye(3)[data.labels]
    val, test = slice(0, 120), slice(120, None)
    arrays = {"logits": scores, "labels": data.labels, "embeddings": data.scores}
    parts = {f"{k}_{p}": v[s] for k, v in arrays.items() for p, s in (("val", val), ("test", test))}
    np.savez(tmp_path / "with.npz", **parts)
    np.savez(tmp_path / "without.npz", **{k: v for k, v in parts.items() if not k.startswith("emb")})
    return tmp_path / "with.npz"


def test_traits_say_what_each_name_takes():
    assert [make(name).traits.needs for name in ("kcal", "kcal-linear", "kcal-logits")] == [
        "embeddings",
        "embeddings",
        "scores",
    ]
    assert make("kcal-linear").projection == "linear"
    assert make("kcal-logits").inputs == "logits"


def test_fit_apply_and_measure_use_the_embeddings_of_a_file(file, capsys):
    saved = str(file.with_name("k.calibrant"))
    assert main(["fit", str(file), "--method", "kcal", "-o", saved, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["test"]["after"]["nll"] < told["test"]["before"]["nll"]
    with np.load(file) as z:
        wanted = calibrant.load(saved).predict_proba(z["embeddings_test"])
    out = str(file.with_name("p.npz"))
    assert main(["apply", saved, str(file), "-o", out, "-q"]) == 0
    with np.load(out) as z:
        np.testing.assert_array_equal(z["probs_test"], wanted)
    assert main(["measure", str(file), "--calibrator", saved, "-q"]) == 0


def test_a_file_without_embeddings_is_told_so(file, capsys):
    bare = str(file.with_name("without.npz"))
    assert main(["fit", bare, "--method", "kcal", "-o", str(file.with_name("k"))]) == 3
    assert "embeddings" in capsys.readouterr().err
    assert main(["compare", bare, "--methods", "all"]) == 0
    told = capsys.readouterr()
    assert "left out, as" in told.err
    assert "kcal, kcal-linear" in told.err
    assert "kcal-logits" in told.out
    assert main(["compare", bare, "--methods", "ts,kcal"]) == 0
    assert "kcal failed: KCal needs embeddings" in capsys.readouterr().err


@pytest.mark.parametrize("words", [False, True])
def test_a_file_of_embeddings_and_labels_is_enough_for_kcal(file, capsys, words):
    with np.load(file) as z:
        parts = {k: z[k] for k in z.files if not k.startswith("logits")}
    if words:
        parts |= {k: np.array(["ant", "bee", "cat"])[v] for k, v in parts.items() if k.startswith("labels")}
    alone, saved = file.with_name("alone.npz"), str(file.with_name("k.calibrant"))
    np.savez(alone, **parts)
    assert main(["fit", str(alone), "--method", "kcal", "-o", saved, "--json"]) == 0
    test = json.loads(capsys.readouterr().out)["test"]
    assert test["after"]["nll"] < 0.5 * test["before"]["nll"]
    assert test["before"]["nll"] == pytest.approx(np.log(3), abs=0.05)
    bare = file.with_name("bare.npz")
    np.savez(bare, embeddings=parts["embeddings_test"])
    out = str(file.with_name("p.csv"))
    assert main(["apply", saved, str(bare), "-o", out, "-q"]) == 0
    wanted = calibrant.load(saved).predict_proba(parts["embeddings_test"])
    np.testing.assert_allclose(np.loadtxt(out, delimiter=",", skiprows=1), wanted, atol=1e-12)
    header = file.with_name("p.csv").read_text().splitlines()[0].split(",")
    assert header == (["prob_ant", "prob_bee", "prob_cat"] if words else ["prob_0", "prob_1", "prob_2"])
    assert main(["measure", str(alone), "--calibrator", saved, "-q"]) == 0
    assert main(["inspect", str(alone)]) == 0
    capsys.readouterr()
    for command in (["measure"], ["compare"], ["fit", "--method", "ts", "-o", saved]):
        assert main([command[0], str(alone), *command[1:]]) == 3
        assert "has embeddings only" in capsys.readouterr().err


def test_compare_chooses_and_refits_on_embeddings(file):
    with np.load(file) as z:
        scores, y, rows = z["logits_val"], z["labels_val"], z["embeddings_val"]
    names = np.array(["ant", "bee", "cat"])
    found = compare(scores, names[y], methods=["kcal", "ts"], embeddings=rows, classes=names)
    assert found["kcal"].metrics["nll"].value < found["ts"].metrics["nll"].value
    assert found.settings["left_out"] == []
    assert found.lowest_ == "kcal"
    assert found.best_ == "kcal"
    assert (found.refit_.classes_ == names).all()
    assert found.refit_.predict_proba(rows).shape == (120, 3)


def test_kcal_can_begin_a_chain_and_a_map_on_logits_stand_anywhere():
    data = cloud(150, 3, 5)
    chain = make("kcal > ts", projection="lda").fit(data.scores, data.labels)
    assert chain.traits.needs == chain.inputs == "embeddings"
    assert make("kcal-logits > ts").inputs == make("ts > irm").inputs == "logits"
    with pytest.raises(InvalidInput, match="takes scores"):
        make("ts > irm", inputs="embeddings").fit(data.scores[:, :3], data.labels)
    assert (chain.predict(data.scores) == data.labels).mean() > 0.8
    assert chain.predict_proba(data.other).shape == (150, 3)
    with pytest.raises(InvalidInput, match="needs embeddings"):
        make("ts > kcal").fit(data.scores[:, :3], data.labels)
    make("ts > kcal-logits", projection="lda").fit(data.scores[:, :3], data.labels)


def test_partial_fit_takes_classes_as_in_scikit_learn():
    data = cloud(90, 3, 4)
    two = data.labels < 2
    map_ = KCal("identity").partial_fit(data.scores[two], data.labels[two], classes=[0, 1, 2])
    assert map_.predict_proba(data.other).shape == (90, 3)
    assert map_.classes is None
    map_.partial_fit(data.scores[~two], data.labels[~two])
    assert (map_.predict(data.scores) == data.labels).mean() > 0.8
    with pytest.raises(InvalidInput, match="classes"):
        map_.partial_fit(data.scores, data.labels, classes=[0, 1])
