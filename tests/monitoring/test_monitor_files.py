"""Saved monitors: resumed without evidence that was not there, and forged ones refused."""

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
def test_resuming_goes_on(how, tmp_path):
    grouped = "question" not in how
    path, rng = tmp_path / "state.json", np.random.default_rng(9)
    monitor = fed(groups=grouped, **how)
    monitor.save(path)
    again = Monitor.load(path)
    assert again.to_dict() == monitor.to_dict()
    for number in range(5):
        p = rng.beta(2, 4, 50)
        y, groups = rng.random(50) < p / 2, np.array(["a", "b"] * 25) if grouped else None
        again.update(y, p, groups=groups)
        monitor.update(y, p, groups=groups)
        assert monitor.log_e - 0.002 <= again.log_e <= monitor.log_e + 1e-6, number
    assert again.findings().verdict == monitor.findings().verdict
    assert (again.alarmed is None) == (monitor.alarmed is None)


@pytest.mark.parametrize("how", [{}, {"promise": "run_length"}, {"method": "closed"}, {"restarts": False}])
def test_saving_after_every_batch_never_adds_evidence_and_takes_little(how):
    """Money is rounded down to a thousandth part a saving, and what is betted later has not been rounded before."""
    rng, kept, saved = np.random.default_rng(4), Monitor(**how), Monitor(**how)
    for number in range(150):
        p = rng.beta(2, 4, 40)
        y = rng.random(40) < (p if number < 100 else p**1.4)
        kept.update(y, p)
        saved = Monitor.from_dict(json.loads(json.dumps(saved.to_dict()))).update(y, p)
        assert kept.log_e - 0.001 * (number + 1) <= saved.log_e <= kept.log_e + 1e-6
    one, other = saved.history(), kept.history()
    assert [point.label for point in one] == [point.label for point in other]
    np.testing.assert_allclose([p.gap for p in one], [p.gap for p in other], atol=1e-5)
    np.testing.assert_allclose([p.error for p in one], [p.error for p in other], rtol=1e-3)
    np.testing.assert_allclose([p.mean for p in one], [p.mean for p in other], atol=1e-5)
    np.testing.assert_allclose([p.high for p in one], [p.high for p in other], atol=1e-5)


def test_a_monitor_of_three_groups_has_eight_kilobytes(tmp_path):
    rng, monitor = np.random.default_rng(0), Monitor()
    for day in range(200):
        p = rng.beta(0.6, 2, 500)
        label = f"2026-{day // 28:02d}-{day % 28:02d}"
        monitor.update(rng.random(500) < p, p, groups=rng.choice(list("abc"), 500), label=label)
    monitor.save(tmp_path / "state.json")
    assert len((tmp_path / "state.json").read_bytes()) <= 8 * 1024
    assert len(json.dumps(monitor.to_dict()["streams"])) <= 4 * 1600


def test_a_new_monitor_can_be_saved(tmp_path):
    Monitor(classes=["no", "yes"]).save(tmp_path / "s.json")
    assert Monitor.load(tmp_path / "s.json").update(["yes"], [0.5]).batches == 1


FORGERIES = {
    "alarm denied": lambda d: d.update(alarm=None, highest=9.0),
    "evidence raised": lambda d: d["streams"][0]["money"].__setitem__(0, [50_000] * 30),
    "evidence raised in sums": lambda d: d["streams"][0]["total"].__setitem__(8, [50_000] * 30),
    "a number that is none": lambda d: d["streams"][0]["lately"].append([0, "1", 1]),
    "money beyond all losses": lambda d: d["streams"][0]["money"][0].__setitem__(0, -1e308),
    "money that is none": lambda d: d["streams"][0]["money"][0].__setitem__(0, True),
    "bets of too few parts": lambda d: d["streams"][0]["money"].pop(),
    "bets of too many parts": lambda d: d["streams"][0]["money"].append([0] * 30),
    "an alternative that is none": lambda d: d["streams"][0]["lately"].append([30, 1, 1]),
    "an alternative twice": lambda d: d["streams"][0].update(lately=[[3, 1, 1], [3, 2, 1]]),
    "a reach without end": lambda d: d["streams"][0].update(lately=[[3, "inf", 1]]),
    "a reach below zero": lambda d: d["streams"][0].update(lately=[[3, -1, 1]]),
    "no label": lambda d: d["trail"][0].__setitem__(1, []),
    "too many labels": lambda d: d["trail"][0].__setitem__(1, ["a", "b", "c"]),
    "too few figures": lambda d: d["trail"][0][3].clear(),
    "a truth value": lambda d: d.update(batches=True),
    "rows below zero": lambda d: d["streams"][0]["total"].__setitem__(0, -1),
    "more events than rows": lambda d: d["streams"][0]["total"].__setitem__(2, 1e9),
    "a list too short": lambda d: d["streams"][0]["money"][0].pop(),
    "no streams": lambda d: d.pop("streams"),
    "another setting": lambda d: d["settings"].update(alpha=2.0),
    "an unknown setting": lambda d: d["settings"].update(beta=2.0),
    "a share too large": lambda d: d["streams"][0].update(share=0.99),
    "a trail of other batches": lambda d: d["trail"].pop(),
    "a change in the future": lambda d: d["streams"][0].update(lately=[[3, 1, 99]]),
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
    "text", ["", "[]", "{}", "null", "[" * 100_000, '{"kind": "calibrant monitor", "format": 1}', "NaN", "\x00\xff"]
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
