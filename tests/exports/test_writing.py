"""The one door to all targets, its command, and vLLM's options."""

import json

import numpy as np
import pytest
from tests.exports.export_cases import fitted, hard_rows, problem, quietly

import calibrant
from calibrant import CalibrantError, PlattScaling, make
from calibrant.cli.main import main
from calibrant.exports import to_vllm
from calibrant.registry import names

WITHOUT_A_FORMULA: set[str] = set()  # registered maps that cannot be exported


def test_every_registered_map_has_a_formula():
    missing = set()
    for name in names():
        try:
            calibrant.exports.describe(fitted(name))
        except CalibrantError:
            missing.add(name)
    assert missing == WITHOUT_A_FORMULA


def test_a_projection_of_the_users_own_is_refused():
    z, y = problem()
    calibrator = quietly(calibrant.KCal(lambda rows: rows[:, :2]), z, y)
    with pytest.raises(CalibrantError, match="its projection is a function of yours"):
        calibrator.to_json()


@pytest.mark.parametrize("name", ["map.onnx", "map.json", "map.sql", "map.pt2"])
def test_the_name_says_what(tmp_path, name):
    pytest.importorskip("torch" if name.endswith("pt2") else "onnx")
    options = {"columns": ["a", "b", "c", "d"], "table": "t"} if name.endswith("sql") else {}
    calibrant.export(fitted("ts"), tmp_path / name, **options)
    assert (tmp_path / name).stat().st_size > 0


def test_the_same_bytes_again(tmp_path):
    pytest.importorskip("onnx")
    for i in range(2):
        fitted("irova").export(tmp_path / f"{i}.onnx")
    assert (tmp_path / "0.onnx").read_bytes() == (tmp_path / "1.onnx").read_bytes()


def test_a_torch_program_is_read_back(tmp_path):
    torch = pytest.importorskip("torch")
    fitted("irm").export(tmp_path / "map.pt2")
    rows = hard_rows("irm", "float32")
    answer = torch.export.load(tmp_path / "map.pt2").module()(torch.from_numpy(rows))
    np.testing.assert_allclose(answer, fitted("irm").predict_proba(rows), rtol=0, atol=1e-6)


def test_a_saved_map_is_exported_by_the_command(tmp_path, capsys):
    pytest.importorskip("onnx")
    pytest.importorskip("torch")
    path = tmp_path / "map.calibrant"
    fitted("irova").save(path)
    for to, end in (("onnx", "onnx"), ("json", "json"), ("torch", "pt2")):
        assert main(["export", str(path), "--to", to, "-o", str(tmp_path / f"out.{end}")]) == 0
    out = tmp_path / "out.sql"
    words = ["--columns", "a, b,c,d", "--table", "t", "--keep", "id", "--dialect", "postgres"]
    assert main(["export", str(path), "--to", "sql", "-o", str(out), *words, "--json"]) == 0
    assert "p_3" in out.read_text()
    assert json.loads(capsys.readouterr().out)["output"] == str(out)
    assert main(["export", str(path), "-o", str(tmp_path / "what.txt")]) == 3
    assert "what to export to is not clear" in capsys.readouterr().err
    assert main(["export", str(path), "--to", "sql", "-o", str(out)]) == 3
    assert "--columns" in capsys.readouterr().err


def test_what_fit_saw_survives_saving(tmp_path):
    rng = np.random.default_rng(0)
    s = rng.normal(size=100)
    calibrator = quietly(PlattScaling(), s, (rng.random(100) < 0.4).astype(int))
    calibrator.save(tmp_path / "map.calibrant")
    loaded = calibrant.load(tmp_path / "map.calibrant")
    assert loaded.to_json() == calibrator.to_json()
    assert json.loads(loaded.to_json())["one_score"]


def test_vllm_scores_are_calibrated():
    rng = np.random.default_rng(1)
    s = rng.normal(size=400) * 3
    y = (rng.random(400) < 1 / (1 + np.exp(-0.5 * s + 1))).astype(int)
    for calibrator in (PlattScaling(), make("platt"), make("ts")):
        quietly(calibrator, s, y)
        told = json.loads(to_vllm(calibrator))
        served = 1 / (1 + np.exp(-(s - told.get("logit_mean", 0.0)) / told["logit_sigma"]))
        np.testing.assert_allclose(served, calibrator.predict_proba(s)[:, 1], rtol=0, atol=1e-12)
    with pytest.raises(CalibrantError, match="vLLM's pooler options"):
        to_vllm(fitted("irova"))
