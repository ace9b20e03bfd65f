"""The number of threads, and holding the BLAS to one."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np  # noqa: F401  it brings the BLAS
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from calibrant.threads import one_blas_thread


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def test_the_blas_has_one_thread_inside_and_as_many_as_before_afterwards() -> None:
    assert blas_threads() == {2}
    with one_blas_thread():
        assert blas_threads() == {1}
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_an_error_inside_gives_the_threads_back() -> None:
    with pytest.raises(ValueError, match="inside"), one_blas_thread():
        raise ValueError("inside")
    assert blas_threads() == {2}


def test_several_fits_at_once_leave_the_threads_as_they_were() -> None:
    barrier = Barrier(3)

    def work(_: int) -> None:
        with one_blas_thread():
            barrier.wait()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    assert blas_threads() == {2}
