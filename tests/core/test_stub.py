"""The types of the compiled core are those that it has."""

import importlib.util
from pathlib import Path

import pytest

from calibrant import _core

pytest.importorskip("nanobind.stubgen")
_SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "stub.py"


def _script():
    spec = importlib.util.spec_from_file_location("stub", _SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_stub_is_what_make_docs_writes() -> None:
    script = _script()
    assert script.STUB.read_text(encoding="utf-8") == script.stub(), "run `make docs`"


def test_every_kernel_has_one_line_of_plain_types() -> None:
    text = _script().stub()
    kernels = [name for name in dir(_core) if not name.startswith("_")]
    assert [text.count(f"def {name}(") for name in kernels] == [1] * len(kernels)
    assert "Annotated" not in text
    assert "keep_probabilities(\n    logits: NDArray[np.floating]," in text
