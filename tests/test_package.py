"""The public names, and that they cost nothing until used."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant


def test_every_public_name_is_there() -> None:
    for name in calibrant.__all__:
        assert getattr(calibrant, name).__name__ == name


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(calibrant.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert seen == calibrant._PLACES


def test_one_version_is_told_everywhere() -> None:
    top = Path(__file__).resolve().parent.parent
    told = re.search(r'^version = "(.*)"', (top / "pyproject.toml").read_text(), re.MULTILINE)
    newest = re.search(r"^## (\S+)", (top / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert told is not None
    assert newest is not None
    assert told[1] == newest[1] == calibrant.__version__


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        calibrant.no_such_name  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, calibrant; print([m for m in ('numpy', 'sklearn', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_blocked_torch_stays_blocked_and_breaks_nothing(moment: str) -> None:
    block = "import sys; sys.modules['torch'] = None"
    lines = [block, "import calibrant"] if moment == "before" else ["import calibrant", block]
    lines += ["calibrant.make('ts').fit([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0, 1, 1])", "import torch"]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.stderr.strip().splitlines()[-1].startswith("ModuleNotFoundError: import of torch halted")


EXTRAS = ["click", "dask", "jinja2", "markupsafe", "matplotlib", "onnx", "pandas", "polars", "pyarrow", "rich", "torch"]
WITHOUT = f"""
import sys, warnings
sys.modules.update(dict.fromkeys({EXTRAS!r}))
warnings.simplefilter("ignore")
import numpy as np, calibrant
from calibrant import plots
rng = np.random.default_rng(0)
z = rng.normal(size=(200, 3))
y = rng.integers(0, 3, size=200)
made = calibrant.make("ets").fit(z, y)
made.save("map.calibrant")
made.to_json(), made.to_sql(["a", "b", "c"], table="t"), calibrant.load("map.calibrant")
found, beside = calibrant.measure(y, made.predict_proba(z)), calibrant.compare(z, y, methods=["ts"])
str(found), str(beside), repr(beside)
np.savez("rows.npz", logits=z, labels=y)
calibrant.make("ts").fit(calibrant.scan("rows.npz"))
open("rows.parquet", "wb").write(b"PAR1")
"""


NEEDS = {
    'calibrant.report(found, "r.html")': "report",
    'calibrant.report(beside, "r.html")': "report",
    "plots.reliability(found)": "plots",
    "beside.plot()": "plots",
    'made.export("m.onnx")': "onnx",
    "made.to_torch()": "torch",
    'made.export("m.pt2")': "torch",
    'calibrant.make("ts").fit(calibrant.scan("rows.parquet", scores="logits", label="y"))': "parquet",
}


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    tried = f"""
for line in {list(NEEDS)!r}:
    try:
        exec(line)
    except calibrant.CalibrantError as error:
        print(error)
import runpy
runpy.run_module("calibrant", run_name="__main__")
"""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + tried], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    told = done.stdout.splitlines()
    assert len(told) == len(NEEDS), done.stderr[-600:]
    for extra, words in zip(NEEDS.values(), told, strict=True):
        assert f"calibrant[{extra}]" in words
    assert done.returncode == 4
    assert "calibrant[cli]" in done.stderr
