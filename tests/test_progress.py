import io
from contextlib import redirect_stderr

import pytest

from calibrant.progress import progress_bar, reporting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def test_long_work_draws_a_bar_with_the_share_done() -> None:
    with redirect_stderr(Terminal()) as screen, progress_bar("working", after=-1) as advance:
        advance(1, 4)
    assert "working" in screen.getvalue()
    assert "25%" in screen.getvalue()


def test_short_work_draws_nothing() -> None:
    with redirect_stderr(Terminal()) as screen, reporting(True, "working") as advance:
        advance(1, 2)
        advance(2, 2)
    assert screen.getvalue() == ""


def test_a_file_gets_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("working", after=-1) as advance:
        advance(1, 4)
    assert capsys.readouterr().err == ""


def test_no_bar_where_none_is_wanted() -> None:
    with redirect_stderr(Terminal()) as screen, reporting(False, "working") as advance:
        advance(1, 4)
    assert screen.getvalue() == ""


def test_a_function_is_called_instead() -> None:
    seen = []
    with reporting(lambda done, total: seen.append((done, total)), "working") as advance:
        advance(3, 4)
    assert seen == [(3, 4)]


def test_no_bar_without_the_library_that_draws_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.progress.find_spec", lambda name: None)
    with redirect_stderr(Terminal()) as screen, progress_bar("working", after=-1) as advance:
        advance(1, 4)
    assert screen.getvalue() == ""
