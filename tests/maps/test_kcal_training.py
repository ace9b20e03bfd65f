"""The training of KCal's projection: what it gains, what it tells while it runs, and when there is none."""

import io
import re
import sys
from functools import partial

import numpy as np
import pytest

from calibrant import CalibrationWarning, KCal
from calibrant.maps import projected
from calibrant.metrics import nll
from calibrant.progress import progress_bar

pytest.importorskip("torch")


def rings(n, seed=0):
    """Classes that no linear projection can part: rings about one centre, in 2 of 6 dimensions."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    angle = rng.random(n) * 2 * np.pi
    plane = np.stack([np.cos(angle), np.sin(angle)], 1) * (1 + 2 * y + 0.4 * rng.normal(size=n))[:, None]
    return np.hstack([plane, 3 * rng.normal(size=(n, 4))]), y


def test_training_lowers_the_held_out_loss_and_that_of_new_rows():
    x, y = rings(1600)
    other, truth = rings(600, seed=1)
    losses = {}
    for projection in ("lda", "learned", "linear"):
        map_ = KCal(projection).fit_projection(x[:1000], y[:1000]).fit(x[1000:], y[1000:])
        losses[projection] = nll(truth, map_.predict_proba(other))
        assert map_.projection_kind_ == map_.fit_report_.details["projection"] == projection
        assert projection == "lda" or min(map_.projection_losses_) < map_.projection_losses_[0] - 0.05
    assert losses["learned"] < losses["lda"] - 0.05
    assert losses["linear"] < losses["lda"] - 0.05


def test_progress_is_told_with_the_loss_until_the_end():
    told = []
    x, y = rings(400)
    map_ = KCal().fit_projection(x, y, progress=lambda *what: told.append(what))
    steps = [step for step, _, _ in told]
    assert steps == sorted(steps)
    assert {total for _, total, _ in told} == {800}
    assert steps[0] == 0
    assert steps[-1] == 800
    assert [loss for _, _, loss in told] == map_.projection_losses_


def test_the_end_comes_near_when_nothing_is_gained():
    rng = np.random.default_rng(0)
    told = []
    KCal().fit_projection(rng.normal(size=(600, 5)), np.arange(600) % 3, progress=lambda *what: told.append(what))
    assert told[-1][:2] == (1200, 1200)
    assert 125 <= told[-2][0] <= 400  # labels by chance: patience, and the last steps


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_long_training_shows_a_bar_with_the_loss_and_the_time_left(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(projected, "progress_bar", partial(progress_bar, after=-1.0))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    x, y = rings(400)
    map_ = KCal().fit_projection(x, y)
    shown = sys.stderr.getvalue()
    assert "learning KCal's projection" in shown
    losses = re.findall(r"\(loss (\d\.\d{4})\)", shown)
    assert losses
    assert set(losses) <= {f"{loss:.4f}" for loss in map_.projection_losses_}
    assert re.search(r"100%.*0:00:00", shown)


def test_nothing_is_shown_where_there_is_no_terminal(capsys):
    x, y = rings(400)
    KCal().fit_projection(x, y)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("projection", ["learned", "linear"])
def test_too_few_rows_to_train_are_told(projection):
    x, y = rings(1000)
    with pytest.warns(CalibrationWarning, match=f'fewer than 300 .*"{projection}".*discriminant'):
        map_ = KCal(projection).fit_projection(x[:299], y[:299]).fit(x[299:], y[299:])
    assert map_.fit_report_.details["projection"] == "lda"
    with pytest.warns(CalibrationWarning, match=r"fewer than 450 .*calibration rows"):
        map_ = KCal(projection).fit(x[:440], y[:440])
    same = KCal("lda").fit(x[:440], y[:440])
    assert map_.projection_kind_ == "lda"
    assert map_.predict_proba(x).tobytes() == same.predict_proba(x).tobytes()


def test_a_small_projection_trains_on_one_thread_and_gives_the_others_back():
    import torch

    from calibrant.torch.projection import train_projection

    x, y = rings(300)
    before, seen = torch.get_num_threads(), []
    try:
        torch.set_num_threads(3)
        train_projection(x, y, np.ones(300), np.eye(2, 6), True, 0, lambda *_: seen.append(torch.get_num_threads()))
        assert seen[0] == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
