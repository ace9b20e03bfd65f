"""Every map on the scores of ordinary models, in every target, beside `predict_proba`: docs/evidence/exports.md.

Goes on where it ended: build/exports.jsonl holds what was found, a line for each set, model and precision.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import onnxruntime
import torch
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))
from tests.exports.export_cases import UNIT, stated  # noqa: E402
from tests.exports.test_json_text import answers, plain  # noqa: E402

from calibrant import CalibrantError, make  # noqa: E402
from calibrant.exports import describe, onnx_model  # noqa: E402
from calibrant.registry import names  # noqa: E402

FOUND = TOP / "build" / "exports.jsonl"
PAGE = TOP / "docs" / "evidence" / "exports.md"
ROWS = 600  # to fit on; a hundred of them and a hundred others are answered
EMBEDDED = ("kcal", "kcal-linear")
PROGRAMS = ("regression", "neighbours, logits")  # models whose maps are compiled too, which takes seconds a map
SINGLE = ("onnx", "torch", "script", "program", "javascript")


WORDS = """# Shipped maps beside predict_proba

**Verdict: {holds}.** {fits:,} fits of {maps} maps on {cases} of {planned} sets of scores, each answered by every
target: in single precision at most {most:.0f} units of 2⁻²⁴ ({size:.1e}), in double {double:.0e}, in DuckDB
{sql:.0e}; labels that a map keeps were moved {moves} times.

`python benchmarks/exports.py`. Scores of scikit-learn's models on breast cancer, digits and made sets of 3 and 26
classes: {views}. The logits of neighbours are logarithms of votes, with -inf; forests, neighbours and bayes give
exact zeros, ones and ties. Maps are fitted on half of the rows; a hundred of these and a hundred others are
answered. Programs and scripts of torch are made of the float32 probabilities of regression and the logits of
neighbours, SQL for up to 10 classes, in double precision. Largest differences, in units for float32 scores (a dash:
not seen), absolute for float64 and SQL:

| map | stated | onnx | torch | script | program | javascript | float64, all | sql |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def sets() -> dict[int, Any]:
    made = {k: make_classification(1600 + 50 * k, 20, n_informative=12, n_classes=k, random_state=k) for k in (3, 26)}
    return {2: load_breast_cancer(return_X_y=True), 10: load_digits(return_X_y=True), **made}


MODELS = {
    "regression": LogisticRegression(max_iter=300),
    "bayes": GaussianNB(var_smoothing=1e-2),
    "forest": RandomForestClassifier(50, random_state=0),
    "neighbours": KNeighborsClassifier(10),
    "boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
    "network": MLPClassifier(50, max_iter=150, random_state=0),
    "margins": SVC(),
}
VIEWS = {  # what of a model is given: (model, inputs, whether one score)
    **{name: (name, "probabilities", False) for name in MODELS if name != "margins"},
    "regression, logits": ("regression", "logits", False),
    "neighbours, logits": ("neighbours", "logits", False),  # logarithms of votes, -inf among them
    "margins": ("margins", "logits", False),
    "forest, one score": ("forest", "probabilities", True),
    "margins, one score": ("margins", "logits", True),
}


def scores(k: int, view: str, trained: dict[Any, Any]) -> tuple[Any, Any, Any]:
    """Return scores of rows that the model was not trained on, their labels and features."""
    called, inputs, one = VIEWS[view]
    if k not in trained:
        X, y = sets()[k]
        order = np.random.default_rng(2).permutation(len(X))
        trained[k] = StandardScaler().fit_transform(X)[order], y[order]
    X, y = trained[k]
    half = len(X) // 2
    if (k, called) not in trained:
        trained[k, called] = make_pipeline(StandardScaler(), clone(MODELS[called])).fit(X[:half], y[:half])
    model = trained[k, called]
    if called == "margins" or view == "regression, logits":
        s = model.decision_function(X[half:])
        s = s if one or s.ndim == 2 else np.stack([np.zeros_like(s), s], axis=1)
    else:
        s = model.predict_proba(X[half:])
        with np.errstate(divide="ignore"):
            s = np.log(s) if inputs == "logits" else s
        s = s[:, 1] if one else s
    return s[: 2 * ROWS], y[half:][: 2 * ROWS], X[half:][: 2 * ROWS]


def by_onnx(calibrator: Any, rows: Any, kind: str) -> Any:
    model = onnx_model(describe(calibrator), dtype=kind).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {"scores": rows})[0]


def by_sql(calibrator: Any, rows: Any) -> Any:
    """The rows in double precision, as a database has them."""
    columns = [f"s{i}" for i in range(1 if rows.ndim == 1 else rows.shape[1])]
    database = duckdb.connect()
    database.execute(f"create table t(id integer, {', '.join(f'{name} double' for name in columns)})")
    listed = [(i, *np.atleast_1d(row).tolist()) for i, row in enumerate(rows.astype(np.float64))]
    database.executemany(f"insert into t values ({', '.join('?' * (len(columns) + 1))})", listed)
    text = calibrator.to_sql(columns, table="t", keep=["id"])
    return np.array(database.execute(f"select * exclude (id) from ({text}) order by id").fetchall(), dtype=float)


def differences(calibrator: Any, rows: Any, kind: str, compiled: bool) -> tuple[dict[str, float], list[str]]:
    """Return the largest difference of each target, and the targets that change a label which the map keeps."""
    wanted = calibrator.predict_proba(rows)
    tensor = torch.from_numpy(rows)
    module = calibrator.to_torch()
    found = {"onnx": by_onnx(calibrator, rows, kind), "torch": module(tensor).numpy()}
    if compiled:
        found["script"] = torch.jit.script(module)(tensor).numpy()
        program = torch.export.export(module, (tensor,), dynamic_shapes=({0: torch.export.Dim("rows")},))
        found["program"] = program.module()(tensor).numpy()
    gaps = {target: float(np.abs(p.astype(float) - wanted).max()) for target, p in found.items()}
    if len(calibrator.classes_) <= 10 and calibrator.called != "hoki":
        double = calibrator.predict_proba(rows.astype(np.float64))
        gaps["sql"] = float(np.abs(by_sql(calibrator, rows) - double).max())
    return gaps, [target for target, p in found.items() if moves_labels(calibrator, p, rows)]


def moves_labels(calibrator: Any, p: Any, rows: Any) -> bool:
    learnt = calibrator.traits.preserves_accuracy and calibrator.traits.parameters != "0"
    return bool(learnt and (calibrator.classes_[p.argmax(axis=1)] != calibrator.predict(rows)).any())


def look(k: int, view: str, kind: str, trained: dict[Any, Any]) -> dict[str, Any]:
    """Return the largest differences of every map on one set of scores."""
    s, y, X = scores(k, view, trained)
    told: dict[str, Any] = {"classes": k, "view": view, "kind": kind, "maps": {}, "refused": {}}
    half, cases = len(y) // 2, []
    for name in names():
        if name in EMBEDDED and view != "regression":
            continue
        data = (X if name in EMBEDDED else s).astype(kind)
        if name not in EMBEDDED and VIEWS[view][1] == "probabilities" and data.ndim == 2:
            data = data / data.sum(axis=1, keepdims=True)
        parameters = {} if name in EMBEDDED else {"inputs": VIEWS[view][1]}
        rows = np.ascontiguousarray(data[half - 100 : half + 100])
        try:
            calibrator = make(name, **parameters).fit(data[:half], y[:half])
        except CalibrantError as error:
            told["refused"][name] = str(error)
            continue
        gaps, moved = differences(calibrator, rows, kind, kind == "float32" and view in PROGRAMS)
        told["maps"][name] = {"gaps": gaps, "moved": moved}
        cases.append((name, calibrator, rows))
    texts = [
        {"map": json.loads(c.to_json(dtype=kind)), "rows": plain(r if r.ndim > 1 else r[:, None])} for _, c, r in cases
    ]
    for (name, calibrator, rows), answer in zip(cases, answers(texts), strict=True):
        p = np.array(answer["rows"], dtype=float)
        told["maps"][name]["gaps"]["javascript"] = float(np.abs(p - calibrator.predict_proba(rows)).max())
        if moves_labels(calibrator, p, rows):
            told["maps"][name]["moved"].append("javascript")
    return told


def wanted() -> list[tuple[int, str, str]]:
    """Return all cases, so ordered that the first dozens have every model and every number of classes."""
    cases = [
        ((place + turn) % 4, kind, classes, view)
        for place, view in enumerate(VIEWS)
        for turn, classes in enumerate((2, 3, 10, 26))
        for kind in ("float32", "float64")
    ]
    return [(classes, view, kind) for _, kind, classes, view in sorted(cases) if classes == 2 or not VIEWS[view][2]]


def main() -> None:
    """Look at what is not found yet, and write the page."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    FOUND.parent.mkdir(exist_ok=True)
    lines = FOUND.read_text(encoding="utf-8").splitlines() if FOUND.exists() else []
    found = [json.loads(line) for line in lines]
    seen = {(f["classes"], f["view"], f["kind"]) for f in found}
    trained: dict[Any, Any] = {}
    for case in wanted():
        if case not in seen:
            k, view, kind = case
            told = look(k, view, kind, trained)
            found.append(told)
            with FOUND.open("a", encoding="utf-8") as file:
                file.write(json.dumps(told) + "\n")
            print(*case, len(told["maps"]), flush=True)
            PAGE.write_text(page(found), encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")


def page(found: list[dict[str, Any]]) -> str:
    worst: dict[tuple[str, str], float] = defaultdict(float)
    moved, refused = [], []
    for f in found:
        where = f"{f['classes']} classes, {f['view']}, {f['kind']}"
        refused += [f"`{name}` on {where}: {words}" for name, words in f["refused"].items()]
        for name, told in f["maps"].items():
            moved += [f"`{name}` by {target} on {where}" for target in told["moved"]]
            for target, gap in told["gaps"].items():
                column = target if target == "sql" or f["kind"] == "float32" else "double"
                worst[name, column] = max(worst[name, column], gap)
    single = {name: max(worst[name, target] for target in SINGLE) / UNIT for name in names()}
    beyond = [name for name in names() if single[name] > stated()[name] or worst[name, "double"] > 1e-12]
    holds = "holds" if not beyond and not moved else "does not hold for " + ", ".join(sorted({*beyond, *moved}))
    fits = sum(len(f["maps"]) for f in found)
    most, double, sql = max(single.values()), *(max(worst[n, t] for n in names()) for t in ("double", "sql"))
    told = {"holds": holds, "fits": fits, "most": most, "size": most * UNIT, "double": double, "sql": sql}
    told |= {
        "maps": len(names()),
        "cases": len(found),
        "planned": len(wanted()),
        "moves": len(moved),
        "views": "; ".join(VIEWS),
    }
    lines = WORDS.format(**told).splitlines()
    for name in names():
        units = [f"{worst[name, t] / UNIT:.0f}" if (name, t) in worst else "–" for t in SINGLE]
        rest = (f"{worst[name, t]:.0e}" if (name, t) in worst else "–" for t in ("double", "sql"))
        lines.append(f"| {name} | {stated()[name]} | {' | '.join([*units, *rest])} |")
    lines += ["", "Fits that were refused:" if refused else "No fit was refused."]
    lines += ["", *(f"- {line}" for line in refused)] if refused else []
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
