"""The automatic choice: what it must keep, whom it keeps together, and the maps it tries on two classes."""

import warnings

import numpy as np
import pytest

from calibrant import AutoCalibrator, CalibrantError, CalibrationWarning, compare
from calibrant.selection.methods import default_methods
from conftest import overconfident


def test_ranking_leaves_only_maps_that_keep_it():
    z, y = overconfident(400, 4)
    found = compare(z, y, methods=["ts", "irova", "hoki", "vector"], preserve="ranking")
    assert found["ts"].eligible
    assert not any(found[name].eligible for name in ("irova", "vector"))
    assert found.best_ in ("ts", "identity")
    with pytest.raises(CalibrantError, match="preserve is not valid"):
        compare(z, y, methods=["ts"], preserve="everything")


def test_automatic_choice_keeps_the_ranking_and_the_groups():
    z, y = overconfident(300, 3)
    groups = np.repeat(np.arange(60), 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        auto = AutoCalibrator(["ts", "vector"], preserve="ranking").fit(z, y, groups=groups)
        assert auto.traits.preserves == "ranking"
        assert auto.best_ in ("ts", "identity")
        same = compare(z, y, methods=["ts", "vector"], preserve="ranking", groups=groups)
        figures = [
            {row["name"]: row["metrics"]["nll"] for row in rows} for rows in (auto.table_, same.to_dict()["rows"])
        ]
        assert figures[0] == figures[1]
        with pytest.raises(CalibrantError, match="one group a row"):
            AutoCalibrator(["ts"]).fit(z, y, groups=groups[:100])


def test_two_classes_try_the_maps_that_win_there():
    assert {"quadratic", "logit-spline", "isotonic-centred"} <= set(default_methods(1000, 2))
    assert "logit-spline" not in default_methods(1000, 3)
