"""Saved monitors: resumed to the bit, and forged ones refused."""

import copy
import json

import numpy as np
import pytest

from calibrant import CalibrantError
from calibrant.errors import FileProblem
from calibrant.monitoring import Monitor
from calibrant.monitoring.saving import digest_of


def fed(batches=12, groups=True, **settings):
    rng, monitor = np.random.default_rng(0), Monitor(**settings)
    for _ in range(batches):
        p = rng.beta(2, 4, 50)
        monitor.update(rng.random(50) < p, p, groups=rng.choice(["a", "b"], 50) if groups else None)
    return monitor


@pytest.mark.parametrize("how", [{}, {"promise": "run_length"}, {"question": "changed"}, {"method": "closed"}])
def test_resuming_gives_the_same_bits(how, tmp_path):
    grouped = "question" not in how
    path, rng = tmp_path / "state.json", np.random.default_rng(9)
    monitor = fed(groups=grouped, **how)
    monitor.save(path)
    again = Monitor.load(path)
    assert again.to_dict() == monitor.to_dict()
    for _ in range(5):
        p = rng.beta(2, 4, 50)
        y, groups = rng.random(50) < p / 2, np.array(["a", "b"] * 25) if grouped else None
        again.update(y, p, groups=groups)
        monitor.update(y, p, groups=groups)
    assert again.to_dict() == monitor.to_dict()
    assert again.findings() == monitor.findings()


def test_a_new_monitor_can_be_saved(tmp_path):
    Monitor(classes=["no", "yes"]).save(tmp_path / "s.json")
    assert Monitor.load(tmp_path / "s.json").update(["yes"], [0.5]).batches == 1


FORGERIES = {
    "alarm denied": lambda d: d.update(alarm=None, highest=9.0),
    "evidence raised": lambda d: d["streams"][0]["log_m"].__setitem__(0, [50.0] * 30),
    "a number that is none": lambda d: d["streams"][0]["best"].__setitem__(0, "1"),
    "a truth value": lambda d: d.update(batches=True),
    "rows below zero": lambda d: d["streams"][0]["total"].__setitem__(0, -1),
    "more events than rows": lambda d: d["streams"][0]["total"].__setitem__(2, 1e9),
    "a list too short": lambda d: d["streams"][0]["best"].pop(),
    "no streams": lambda d: d.pop("streams"),
    "another setting": lambda d: d["settings"].update(alpha=2.0),
    "an unknown setting": lambda d: d["settings"].update(beta=2.0),
    "a share too large": lambda d: d["streams"][0].update(share=0.99),
    "a trail of other batches": lambda d: d["trail"].pop(),
    "a change in the future": lambda d: d["streams"][0].update(since=[99] * 30),
    "money from nowhere": lambda d: d["streams"][0].update(log_u=[5.0] * 5),
    "a class twice": lambda d: d.update(classes=[0, 0]),
    "text for a list": lambda d: d.update(trail="none"),
    "a huge count": lambda d: d.update(turns=2**80),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_states_are_refused_even_with_a_newdigest_of(name):
    document = json.loads(json.dumps(fed().to_dict()))
    Monitor.from_dict(copy.deepcopy(document))
    FORGERIES[name](document)
    with pytest.raises(FileProblem, match="digest"):
        Monitor.from_dict(document)
    body = {key: value for key, value in document.items() if key not in ("kind", "format", "digest")}
    document["digest"] = digest_of(body)
    with pytest.raises(FileProblem):
        Monitor.from_dict(document)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", "[" * 100_000, '{"kind": "calibrant monitor", "format": 2}', "NaN", "\x00\xff"]
)
def test_other_files_are_refused(text, tmp_path):
    path = tmp_path / "state.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(CalibrantError):
        Monitor.load(path)
    with pytest.raises(CalibrantError, match="cannot read"):
        Monitor.load(tmp_path / "missing.json")


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "state.json"
    monitor = fed()
    monitor.save(path)
    before = path.read_bytes()
    monkeypatch.setattr("calibrant.monitoring.saving.json.dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        monitor.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
