"""Build the core with sanitizers and run it under them: ``make sanitize``.

Two builds: Address and UndefinedBehavior together (with casts of floating point out of range, which plain
UndefinedBehavior leaves out), and Thread. Under each: the kernel tests, the contract of the maps that use most of the
core, and for some seconds the fuzzers of the core. The first report ends the process that made it, and this script.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import nanobind

ROOT = Path(__file__).resolve().parents[1]
BUILDS = {
    "address": ("address,undefined,float-cast-overflow", ["libasan.so", "libubsan.so"]),
    "thread": ("thread", ["libtsan.so"]),
}
KERNEL_TESTS = [
    "tests/core",
    "tests/kept/test_kept_core.py",
    "tests/maps/scaling/test_linear_kernels.py",
    "tests/maps/test_density_kernels.py",
    "tests/metrics/test_metric_kernels.py",
]
QUIETLY = ("-q", "-x", "-p", "no:cacheprovider")
# One map of each family of kernels.
FAMILIES = ("ets", "vector", "matrix-odir", "isotonic-s", "platt-s", "imax-cw", "hoki", "iop", "bts")
CONTRACT = " or ".join(f"keeps_the_contract[{name}-" for name in FAMILIES)
OPTIONS = {
    # Python itself never gives back all of its memory, and asks for more than there is where a test wants that.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:abort_on_error=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": f"halt_on_error=1:allocator_may_return_null=1:suppressions={ROOT / 'scripts' / 'tsan.supp'}",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
# Libraries that end the process when they are loaded under a sanitizer, without a line of ours (polars: its allocator).
HIDDEN = {"address": [], "thread": ["polars"]}
# The package of the build comes before an editable installation, whose finder would come first.
START = (
    "import sys; sys.meta_path = [f for f in sys.meta_path if 'ScikitBuild' not in type(f).__name__]; "
    "sys.modules.update(dict.fromkeys({hidden!r})); "
    "sys.path.insert(0, {package!r}); sys.path.insert(1, {root!r}); sys.argv = {argv!r}; "
    "import calibrant._core as core; assert core.__file__.startswith({package!r}), core.__file__; "
    "import runpy; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


def build(name: str) -> Path:
    """Build the core with the sanitizers, and return the folder of a package that has it."""
    sanitizers, _ = BUILDS[name]
    room = ROOT / "build" / "sanitize" / name
    tools = Path(sys.executable).parent
    cmake = [
        *(str(tools / "cmake"), "-S", str(ROOT), "-B", str(room / "cmake"), "-G", "Ninja"),
        f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}",
        f"-DCALIBRANT_SANITIZE={sanitizers}",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dnanobind_DIR={nanobind.cmake_dir()}",
    ]
    if subprocess.run(["which", "ccache"], capture_output=True).returncode == 0:
        cmake.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    subprocess.run(cmake, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([str(tools / "ninja"), "-C", str(room / "cmake")], check=True, stdout=subprocess.DEVNULL)
    package = room / "package" / "calibrant"
    package.mkdir(parents=True, exist_ok=True)
    for old in package.iterdir():
        old.unlink()
    for source in (ROOT / "src" / "calibrant").iterdir():
        if not source.name.startswith(("_core.cpython", "__pycache__")):
            (package / source.name).symlink_to(source)
    for core in (room / "cmake").glob("_core*.so"):
        (package / core.name).symlink_to(core)
    return package.parent


def run(name: str, package: Path, module: str, *arguments: str) -> None:
    """Run a module under the sanitizers' libraries; raise where it fails, or where a fuzzer says what it found."""
    libraries = [
        subprocess.check_output(["gcc", f"-print-file-name={lib}"], text=True).strip() for lib in BUILDS[name][1]
    ]
    environment = {**os.environ, **OPTIONS, "LD_PRELOAD": " ".join(libraries), "PYTHONMALLOC": "malloc"}
    start = START.format(package=str(package), root=str(ROOT), argv=[module, *arguments], hidden=HIDDEN[name])
    print(f"{time.strftime('%H:%M:%S')} {name}: {module} {' '.join(arguments)}", flush=True)
    fuzzes = module == "fuzz.worker"
    out = subprocess.PIPE if fuzzes else None
    done = subprocess.run([sys.executable, "-c", start], cwd=ROOT, env=environment, stdout=out, text=True)
    found = done.stdout.strip() if fuzzes else ""
    if done.returncode or found:
        raise SystemExit(f"{name}: {module} {' '.join(arguments)} ended with {done.returncode}\n{found}")


def main() -> None:
    """Build and run everything under each sanitizer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of fuzzing, under each build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=list(BUILDS))
    parser.add_argument("--quick", action="store_true", help="the kernel tests and a short fuzz alone")
    arguments = parser.parse_args()
    for name in [arguments.only] if arguments.only else list(BUILDS):
        package = build(name)
        place = package / "place"
        place.write_bytes(bytes(8))
        for fuzzer in ("kernels", "calls"):
            given = (fuzzer, str(arguments.seed), "0", str(arguments.seconds / 2), str(place))
            run(name, package, "fuzz.worker", *given)
        run(name, package, "pytest", *QUIETLY, *KERNEL_TESTS)
        if not arguments.quick:
            run(name, package, "pytest", *QUIETLY, "tests/contract/test_contract.py", "-k", CONTRACT)
    print(f"{time.strftime('%H:%M:%S')} nothing found")


if __name__ == "__main__":
    main()
