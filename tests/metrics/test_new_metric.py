"""A new metric is a file, a test and a row: this adds one, as a contributor would, and asks for it everywhere."""

import json
import types
from pathlib import Path

import numpy as np
import pytest

from calibrant import measure, metrics
from calibrant.cli.main import main
from calibrant.metrics import table

# What its file would hold: an estimator of pairs, from anywhere in the package.
FILE = '''
def squared_gap_in_the_large(pairs):
    """(mean score - frequency)²."""
    w = pairs.weight_array
    return float(np.average(pairs.scores - pairs.outcomes, weights=w) ** 2)
'''
ROW = '    Figure("squared_gap", "Square of mean {said} less {seen}.", estimator=squared_gap_in_the_large),\n'


@pytest.fixture
def added(monkeypatch):
    """The table with the row in it, and the row in the table that is in use."""
    source = Path(table.__file__).read_text()
    opening = "ROWS: tuple[Metric, ...] = (\n"
    assert source.count(opening) == 1
    made = types.ModuleType("calibrant.metrics.table_with_a_row")
    made.__package__ = "calibrant.metrics"
    exec(compile("import numpy as np" + FILE, "new_file", "exec"), made.__dict__)
    exec(compile(source.replace(opening, opening + ROW), table.__file__, "exec"), made.__dict__)
    monkeypatch.setitem(table.TABLE, "squared_gap", made.TABLE["squared_gap"])
    monkeypatch.setitem(table.PROFILES, "forecast", ("ece_crossfit", "squared_gap"))
    return made.FUNCTIONS["squared_gap"]


@pytest.fixture
def rows(rng):
    p = rng.beta(2, 3, 400)
    return (rng.random(400) < 0.8 * p).astype(int), p


def test_it_is_a_function_with_words(added, rows):
    y, p = rows
    assert added(y, p) == pytest.approx((p.mean() - y.mean()) ** 2)
    assert added.__name__ == "squared_gap"
    assert added.__doc__.startswith("Square of mean scores less frequency.")
    assert table.meanings_of(True)["squared_gap"] == "Square of mean probability less frequency."


def test_it_is_a_state_that_merges_and_serialises(added, rows):
    y, p = rows
    one, two = metrics.state("squared_gap"), metrics.state("squared_gap")
    total = one.update(y[:100], p[:100]) + two.update(y[100:], p[100:])
    assert total.finalise() == pytest.approx(added(y, p))
    again = metrics.State.from_dict(json.loads(json.dumps(total.to_dict())))
    assert again.finalise() == pytest.approx(total.finalise(), abs=1e-6)


def test_it_has_an_interval_and_stands_in_a_measurement(added, rows):
    y, p = rows
    found = metrics.bootstrap("squared_gap", y, p, resamples=50)
    assert found.low <= found.estimate <= found.high
    assert measure(y, p, profile="forecast", resamples=50).metrics["squared_gap"].estimate == pytest.approx(added(y, p))


def test_the_command_line_tells_it(added, rows, tmp_path, capsys):
    y, p = rows
    np.savez(tmp_path / "a.npz", probs=p, labels=y)
    assert main(["measure", str(tmp_path / "a.npz"), "--profile", "forecast", "--fail-if", "squared-gap > 0"]) == 1
    assert "squared_gap" in capsys.readouterr().out
