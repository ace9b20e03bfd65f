"""The public names, and that they cost nothing until used."""

import ast
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
