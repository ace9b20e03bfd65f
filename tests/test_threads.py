"""The number of threads: the process's, a caller's own limit, and the BLAS's."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

import numpy as np  # noqa: F401  it brings the BLAS
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import calibrant
from calibrant.errors import InvalidInput
from calibrant.threads import blas_threads, carried, get_threads, one_blas_thread, set_threads, thread_limit


@pytest.fixture
def _six_threads() -> Iterator[None]:
    before = get_threads()
    set_threads(6)
    yield
    set_threads(before)


@pytest.mark.usefixtures("_six_threads")
def test_a_limit_ends_with_its_block_and_never_raises_the_count() -> None:
    with thread_limit(4):
        assert calibrant.get_threads() == 4
        with thread_limit(2):
            assert get_threads() == 2
        assert get_threads() == 4
        set_threads(3)
        assert get_threads() == 3
    assert get_threads() == 3
    with pytest.raises(ValueError, match="inside"), thread_limit(1):
        raise ValueError("inside")
    assert get_threads() == 3


@pytest.mark.usefixtures("_six_threads")
def test_a_limit_is_the_callers_own() -> None:
    inside, look = threading.Event(), threading.Event()

    def limited() -> int:
        with thread_limit(1):
            inside.set()
            look.wait(10)
            return get_threads()

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(limited)
        assert inside.wait(10)
        assert get_threads() == 6
        look.set()
        assert found.result() == 1


@pytest.mark.usefixtures("_six_threads")
def test_work_on_other_threads_is_carried_under_the_limit() -> None:
    barrier = Barrier(3)

    def count(_: int) -> int:
        barrier.wait(10)
        return get_threads()

    with ThreadPoolExecutor(3) as pool:
        with thread_limit(2):
            assert list(pool.map(carried(count), range(3))) == [2, 2, 2]
        assert list(pool.map(count, range(3))) == [6, 6, 6]


@pytest.mark.usefixtures("_six_threads")
def test_wrong_counts_are_refused_and_change_nothing() -> None:
    for bad in (0, -1, 1.5, True, "2"):
        with pytest.raises(InvalidInput, match="threads"):
            set_threads(bad)  # pyright: ignore[reportArgumentType]
    assert get_threads() == 6


# The BLAS ---------------------------------------------------------------------------------------------------------


def _blas() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def _two_blas_threads() -> Iterator[None]:
    """Two threads for the BLAS, set by a thread that has ended: one that lives keeps others from setting them."""
    before = _blas()

    def on_a_thread(count: int) -> None:
        thread = threading.Thread(target=threadpool_limits, args=(count,), kwargs={"user_api": "blas"})
        thread.start()
        thread.join()

    on_a_thread(2)
    yield
    on_a_thread(max(before))


@pytest.mark.usefixtures("_two_blas_threads")
def test_the_blas_has_one_thread_inside_and_as_many_as_before_afterwards() -> None:
    assert _blas() == {2}
    with one_blas_thread():
        assert _blas() == {1}
        with one_blas_thread():
            assert _blas() == {1}
        assert _blas() == {1}
    assert _blas() == {2}
    with blas_threads(2):
        assert _blas() == {2}


@pytest.mark.usefixtures("_two_blas_threads")
def test_an_error_inside_gives_the_threads_back() -> None:
    with pytest.raises(ValueError, match="inside"), one_blas_thread():
        raise ValueError("inside")
    assert _blas() == {2}
    with one_blas_thread():
        assert _blas() == {1}


@pytest.mark.usefixtures("_two_blas_threads")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_whoever_leaves_last_the_threads_are_as_they_were(order: tuple[int, ...]) -> None:
    callers = [ThreadPoolExecutor(1) for _ in order]
    stacks = [ExitStack() for _ in order]
    for caller, stack in zip(callers, stacks, strict=True):
        caller.submit(stack.enter_context, one_blas_thread()).result()
        assert _blas() == {1}
    for number in order:
        callers[number].submit(stacks[number].close).result()
    assert _blas() == {2}
    for caller in callers:
        caller.shutdown()
