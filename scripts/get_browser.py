"""Bring along a headless Chromium for the tests of the report: from npm, into .browser/, once."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HOME = Path(__file__).resolve().parents[1] / ".browser"
PACKAGE = "@sparticuz/chromium@131.0.0"
FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{home}/fonts</dir><cachedir>{home}/cache</cachedir></fontconfig>
"""


def main() -> int:
    """Fetch and unpack, unless it is there."""
    if (HOME / "chromium").exists():
        return 0
    try:
        import brotli

        with tempfile.TemporaryDirectory() as place:
            subprocess.run(["npm", "pack", PACKAGE, "--silent"], cwd=place, check=True, timeout=300)
            _unpack(next(Path(place).glob("*.tgz")), brotli.decompress)
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"no browser ({error}); the tests that need one are skipped\n")
        return 1
    return 0


def _unpack(package: Path, decompress: object) -> None:
    HOME.mkdir(exist_ok=True)
    with tarfile.open(package) as outer:
        for name in ("al2023.tar", "swiftshader.tar", "fonts.tar"):
            with tarfile.open(fileobj=io.BytesIO(_member(outer, name, decompress))) as inner:
                inner.extractall(HOME, filter="data")
        (HOME / "fonts.conf").write_text(FONTS.format(home=HOME))
        program = HOME / "chromium.part"
        program.write_bytes(_member(outer, "chromium", decompress))
    program.chmod(0o755)
    program.rename(HOME / "chromium")


def _member(archive: tarfile.TarFile, name: str, decompress: object) -> bytes:
    file = archive.extractfile(f"package/bin/{name}.br")
    assert file is not None
    return decompress(file.read())  # type: ignore[operator]


if __name__ == "__main__":
    sys.exit(main())
