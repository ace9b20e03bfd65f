"""Fits from many threads and processes at once, forks, interrupts, and memory that is not there."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

import calibrant
from calibrant import _core
from calibrant.threads import get_threads, set_threads, thread_limit

NAMES = ["ts", "ets", "vector", "irova", "imax-cw", "hb-mass", "bts", "kcal-logits"]
RNG = np.random.default_rng(0)
Z = RNG.normal(size=(300, 4)) * 2
Y = np.where(RNG.random(300) < 0.6, Z.argmax(axis=1), RNG.integers(0, 4, 300))
posix = pytest.mark.skipif(os.name != "posix", reason="as POSIX does it")


def answers(name: str) -> bytes:
    """Fit and ask: what every caller must get, whoever calls at the same time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calibrant.CalibrationWarning)
        return calibrant.make(name).fit(Z, Y).predict_proba(Z).tobytes()


@pytest.fixture
def _two_threads():
    set_threads(2)
    yield
    set_threads(None)


def in_child(code: str, seconds: float = 120) -> str:
    """Run code in a process of its own and return what it says; its death is a failure."""
    start = "import os, sys, resource\nimport numpy as np\nimport calibrant\nfrom calibrant import _core\n"
    command = [sys.executable, "-W", "ignore", "-c", start + textwrap.dedent(code)]
    kept = {"MALLOC_MMAP_THRESHOLD_": "65536"}  # what is freed goes back to the system, and is not there the next time
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env={**os.environ, **kept})
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-800:]}"
    return done.stdout.strip()


# Threads and processes --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_two_threads")
@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_eight_threads_get_what_one_gets():
    wanted = {name: answers(name) for name in NAMES}
    blas = {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(answers, NAMES * 3))
    assert [NAMES[i % len(NAMES)] for i, got in enumerate(found) if got != wanted[NAMES[i % len(NAMES)]]] == []
    assert get_threads() == 2
    assert {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} == blas


@pytest.mark.usefixtures("_two_threads")
@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_one_map_is_asked_from_eight_threads():
    fitted = calibrant.make("irova-ets").fit(Z, Y)
    wanted = fitted.predict_proba(Z).tobytes()
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: fitted.predict_proba(Z).tobytes(), range(40))) == {wanted}


@pytest.mark.usefixtures("_two_threads")
def test_a_callers_limit_is_seen_by_no_other_caller_while_both_fit():
    """One fits under a limit of one thread, the others without; each sees its own count before, during and after."""
    seen: dict[str, set[int]] = {"limited": set(), "free": set()}
    gate = threading.Barrier(3)

    def free() -> None:
        gate.wait(10)
        for _ in range(4):
            answers("irova")
            seen["free"].add(get_threads())

    def limited() -> None:
        with thread_limit(1):
            gate.wait(10)
            for _ in range(4):
                answers("irova")
                seen["limited"].add(get_threads())
        seen["free"].add(get_threads())

    with ThreadPoolExecutor(3) as pool:
        for work in [pool.submit(free), pool.submit(free), pool.submit(limited)]:
            work.result()
    assert seen == {"limited": {1}, "free": {2}}


def test_processes_of_joblib_get_what_this_one_gets():
    names = ["ts", "irova", "vector"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joblib's own, about time and forks
        found = joblib.Parallel(n_jobs=2)(joblib.delayed(answers)(name) for name in names)
    assert found == [answers(name) for name in names]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_after_use_fits_as_before():
    """The child of a process that has used threads has none of them, and must not wait for them."""
    said = in_child("""
        import signal
        rng = np.random.default_rng(0)
        z, y = rng.normal(size=(40_000, 4)), rng.integers(0, 4, 40_000)
        calibrant.set_threads(2)
        fit = lambda: [calibrant.make(name).fit(z, y).predict_proba(z).tobytes() for name in ("ts", "irova", "vector")]
        before = fit()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(0 if fit() == before else 3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), fit() == before)
    """)
    assert said == "0 True"


# Interrupts -------------------------------------------------------------------------------------------------------


def long_calls():
    """Kernels that would run for minutes: by blocks of rows, and one that has no threads of its own."""
    rows = np.random.default_rng(1).normal(size=(200_000, 4))
    ones = np.ones(30_000)
    return {
        "rows": lambda: _core.keep_probabilities(rows, 0, 100.0, 2**16, 1),
        "rows on two threads": lambda: _core.keep_probabilities(rows, 0, 100.0, 2**16, 2),
        "many classes": lambda: _core.keep_probabilities(np.zeros((50, 4000)), 0, 100.0, 2**16, 1),
        "partition": lambda: _core.best_partition(ones, ones / 2, 500),
    }


@pytest.fixture
def _hears_ctrl_c():
    """As a shell's background job ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@posix
@pytest.mark.usefixtures("_hears_ctrl_c")
@pytest.mark.parametrize("name", sorted(long_calls()))
def test_ctrl_c_is_heard_within_a_kernel(name):
    """The kernel asks five times a second; ten seconds are for a machine that has other things to do."""
    sent: list[float] = []
    call = long_calls()[name]

    def send() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Timer(0.3, send)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        call()
    sender.join()
    assert time.monotonic() - sent[0] < 10


# Memory -----------------------------------------------------------------------------------------------------------


LIMIT = """
        def limit(megabytes=None):
            with open("/proc/self/statm") as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            most = resource.RLIM_INFINITY if megabytes is None else used + megabytes * 1_000_000
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))

        calibrant.set_threads(2)
        rng = np.random.default_rng(0)
"""


@posix
def test_whichever_allocation_of_a_kernel_fails_is_a_memory_error():
    """The caller's or a worker thread's: no abort, no wrong answer, no other exception."""
    said = in_child(f"""{LIMIT}
        scores, places, edges = rng.normal(size=(4, 1_000_000)), np.zeros(1_000_000, int), np.linspace(0.1, 1, 9)[None]
        call = lambda: _core.bin_sums(scores, np.arange(4), None, places, None, edges, 2).tobytes()
        wanted, endings = call(), []
        while "right" not in endings and len(endings) < 60:
            limit(2 + 3 * len(endings))
            try:
                endings.append("right" if call() == wanted else "wrong")
            except MemoryError:
                endings.append("MemoryError")
            limit()
        print(len(endings) > 3, sorted(set(endings)))
    """)
    assert said == "True ['MemoryError', 'right']"


@posix
@pytest.mark.parametrize("name", ["kcal-logits", "ets"])
def test_a_fit_without_memory_is_a_memory_error_and_the_next_one_works(name):
    said = in_child(f"""{LIMIT}
        z, y = rng.normal(size=(200_000, 8)), rng.integers(0, 8, 200_000)
        calibrant.make("{name}").fit(z[:500], y[:500])  # imports everything
        limit(10)
        try:
            calibrant.make("{name}").fit(z, y)
        except MemoryError:
            limit()
            p = calibrant.make("{name}").fit(z[:500], y[:500]).predict_proba(z[:500])
            print(np.allclose(p.sum(axis=1), 1))
    """)
    assert said == "True"
