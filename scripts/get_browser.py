"""Bring along a headless Chromium for the tests of the report: from the npm registry, into .browser/, once."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import platform
import sys
import tarfile
import urllib.request
from collections.abc import Callable
from pathlib import Path

HOME = Path(__file__).resolve().parents[1] / ".browser"
PACKAGE = "@sparticuz/chromium/-/chromium-131.0.0.tgz"
SHA256 = "8a8b5e5f3c67ba2622d335de910c90884f3a977225c3549d757b16a89965604c"
SUPPORTED = platform.system() == "Linux" and platform.machine() in ("x86_64", "AMD64")
FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{home}/fonts</dir><cachedir>{home}/cache</cachedir></fontconfig>
"""
FLAGS = [
    "--no-sandbox",
    "--no-zygote",
    "--single-process",
    "--in-process-gpu",
    "--disable-gpu",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--headless=shell",
]


def get_browser() -> str:
    """Fetch and unpack the browser unless it is there; return "", or why there is none."""
    if (HOME / "chromium").exists():
        return ""
    if not SUPPORTED:
        return f"it is for Linux on x86_64, this is {platform.system()} on {platform.machine()}"
    HOME.mkdir(exist_ok=True)
    with open(HOME / "lock", "w") as lock:  # tests on several workers may ask at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if not (HOME / "chromium").exists():
                _unpack(_fetch())
        except (ImportError, OSError, ValueError) as error:
            return f"{type(error).__name__}: {error}"
    return ""


def launch_options() -> dict[str, object]:
    """Return what playwright's ``chromium.launch`` takes to start it."""
    place = {"LD_LIBRARY_PATH": f"{HOME}/lib:{HOME}", "FONTCONFIG_PATH": str(HOME)}
    return {"executable_path": str(HOME / "chromium"), "args": FLAGS, "env": {**os.environ, **place}}


def _fetch() -> bytes:
    registry = os.environ.get("NPM_CONFIG_REGISTRY", "https://registry.npmjs.org").rstrip("/")
    with urllib.request.urlopen(f"{registry}/{PACKAGE}", timeout=300) as answer:
        data = answer.read()
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise ValueError(f"{registry}/{PACKAGE} is not what was expected: its SHA-256 differs")
    return data


def _unpack(package: bytes) -> None:
    from brotli import decompress

    with tarfile.open(fileobj=io.BytesIO(package)) as outer:
        for name in ("al2023.tar", "swiftshader.tar", "fonts.tar"):
            with tarfile.open(fileobj=io.BytesIO(_member(outer, name, decompress))) as inner:
                inner.extractall(HOME, filter="data")
        (HOME / "fonts.conf").write_text(FONTS.format(home=HOME))
        program = HOME / "chromium.part"
        program.write_bytes(_member(outer, "chromium", decompress))
    program.chmod(0o755)
    program.rename(HOME / "chromium")


def _member(archive: tarfile.TarFile, name: str, decompress: Callable[[bytes], bytes]) -> bytes:
    file = archive.extractfile(f"package/bin/{name}.br")
    if file is None:
        raise ValueError(f"the package has no {name}")
    return decompress(file.read())


if __name__ == "__main__":
    trouble = get_browser()
    if trouble:
        sys.exit(f"no browser: {trouble}")
