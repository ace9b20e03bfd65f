"""Keep a blocked optional package blocked in a way that SciPy survives."""

from __future__ import annotations

import sys

# SciPy 1.17 (through array_api_compat) asks whether an array is one of these packages' by looking into
# sys.modules, and takes the None there, which is how Python spells "importing this fails", for the package.
ARRAY_PACKAGES = ("cupy", "dask", "dask.array", "jax", "ndonnx", "sparse", "torch")


class _Refusal:
    """A finder that refuses one package, as None in sys.modules does."""

    def __init__(self, name: str):
        self.name = name

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == self.name:
            raise ModuleNotFoundError(f"import of {fullname} halted; it was None in sys.modules", name=fullname)


def survive_blocked_imports() -> None:
    """Turn each None in sys.modules that SciPy trips over into a finder that refuses the same import."""
    for name in ARRAY_PACKAGES:
        if name in sys.modules and sys.modules[name] is None:
            sys.meta_path.insert(0, _Refusal(name))
            del sys.modules[name]
