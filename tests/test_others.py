"""The page beside other libraries: what its first column says calibrant has is there and answers."""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant import metrics
from calibrant.monitoring import Monitor

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "others.md").read_text(encoding="utf-8")
OURS = dict(re.findall(r"^\| ([^|\s][^|]*) \| ([^|]*) \|", PAGE, re.MULTILINE))
RNG = np.random.default_rng(0)
TRUTH = RNG.normal(size=(400, 3))
Y = (TRUTH + RNG.gumbel(size=TRUTH.shape)).argmax(axis=1)
Z = 2.0 * TRUTH
P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
EVENT, RISK = (Y == 1).astype(int), P[:, 1]


def maps(*names):
    for name in names:
        p = calibrant.make(name).fit(Z, Y).predict_proba(Z)
        assert np.allclose(p.sum(axis=1), 1.0)


def figures(*names):
    for name in names:
        assert np.isfinite(getattr(metrics, name)(EVENT, RISK))


def kernels():
    calibrant.KCal("lda").fit(Z, Y).predict_proba(Z)
    maps("hoki")


def interval():
    low, high = calibrant.VennAbers(inputs="probabilities").fit(RISK, EVENT).predict_interval(RISK)
    assert (low <= high).all()


def operators():
    groups = np.arange(400) % 2
    calibrant.ByGroup(calibrant.make("ts")).fit(Z, Y, groups=groups).predict_proba(Z, groups=groups)
    calibrant.Chain([calibrant.make("ts"), calibrant.make("vector")]).fit(Z, Y).predict_proba(Z)
    calibrant.Mixture([calibrant.make("ts"), calibrant.make("vector")]).fit(Z, Y).predict_proba(Z)
    calibrant.TopLabel(calibrant.PlattScaling()).fit(Z, Y).predict_proba(Z)
    calibrant.MultiLabel(calibrant.PlattScaling()).fit(Z, np.eye(3)[Y]).predict_proba(Z)


def shifts():
    shifted = calibrant.PriorShift(calibrant.make("ts")).fit(Z, Y)
    shifted.adapt(Z[:200])
    shifted.predict_proba(Z)


def whole_model():
    from sklearn.naive_bayes import GaussianNB

    calibrant.CalibratedModel(GaussianNB()).fit(Z, Y).predict_proba(Z)


def choice():
    assert "±" in calibrant.compare(Z, Y, methods=["ts", "vector"]).reason


def intervals():
    measured = calibrant.measure(Y, P)
    assert 0 <= measured.test.pvalue <= 1
    assert "95 % interval" in str(measured)


def curve():
    figures("calibration_slope", "calibration_intercept", "ici")
    assert len(metrics.reliability_curve(EVENT, RISK).isotonic.low)


def decomposed():
    assert metrics.brier_decomposition(Y, P).calibration >= 0
    assert metrics.nll_decomposition(Y, P).calibration >= 0


def merging():
    whole, first, second = metrics.state("brier"), metrics.state("brier"), metrics.state("brier")
    whole.update(Y, P)
    first.update(Y[:100], P[:100])
    second.update(Y[100:], P[100:])
    assert first.merge(second).finalise() == pytest.approx(whole.finalise())


def streams():
    Monitor().update(Y, P)


def from_blocks():
    blocks = [(Z[:100], Y[:100]), (Z[100:], Y[100:])]
    found = calibrant.TemperatureScaling().fit(calibrant.scan(lambda: iter(blocks)))
    assert found.temperature_ == pytest.approx(calibrant.TemperatureScaling().fit(Z, Y).temperature_, rel=1e-5)


def exported():
    fitted = calibrant.make("ts").fit(Z, Y)
    assert "select" in fitted.to_sql(["a", "b", "c"], table="t").lower()
    assert fitted.to_json()


def saved(path):
    fitted = calibrant.make("ts").fit(Z, Y)
    fitted.save(path / "map.calibrant")
    assert b"pickle" not in (path / "map.calibrant").read_bytes()
    assert (calibrant.load(path / "map.calibrant").predict_proba(Z) == fitted.predict_proba(Z)).all()


def gates(path):
    np.savez(path / "scores.npz", logits=Z, labels=Y)
    run = [sys.executable, "-m", "calibrant", "measure", str(path / "scores.npz"), "--fail-if", "ece>0.000001"]
    assert subprocess.run(run, capture_output=True, check=False).returncode == 1


def page(path):
    calibrant.report(calibrant.measure(EVENT, RISK, profile="risk"), path / "report.html")
    assert "TRIPOD+AI" in (path / "report.html").read_text(encoding="utf-8")


RUN = {
    "one temperature": lambda: maps("ts"),
    "Platt, isotonic": lambda: maps("platt", "isotonic"),
    "beta": lambda: maps("beta"),
    "centred isotonic, splines": lambda: maps("isotonic-centred", "spline", "logit-spline"),
    "histogram binning, BBQ": lambda: maps("hb-mass", "bbq"),
    "I-Max, mutual-information bins": lambda: maps("imax", "mi-binning"),
    "Venn–Abers with its interval": interval,
    "vector, matrix, Dirichlet": lambda: maps("vector", "matrix", "dirichlet"),
    "strengths by evidence (`svs`, `sms`)": lambda: maps("svs", "sms"),
    "order-preserving, Gaussian process, bin-wise temperature": lambda: maps("iop", "gp", "bts"),
    "kernel maps on embeddings, label changes under noise": kernels,
    "by group, chain, mixture, top label, several events": operators,
    "other class frequencies": shifts,
    "around a whole model, cross-validated": whole_model,
    "choice of a map by held-out rows, with its error": choice,
    "binned errors (ECE, MCE, class-wise)": lambda: figures("ece", "mce", "cwece"),
    "debiased, sweep, smooth, kernel errors": lambda: figures("ece_debiased", "ece_sweep", "smece", "ece_kde", "skce"),
    "with intervals and a test": intervals,
    "slope, intercept, ICI, smooth curve with a band": curve,
    "proper scores decomposed": decomposed,
    "net benefit, decision curves": lambda: metrics.decision_curve(EVENT, RISK),
    "states that merge, rows beyond memory": merging,
    "e-values, confidence sequences over time": streams,
    "TRIPOD+AI checklist in a report": page,
    "fits from files, streams, Dask, Spark": from_blocks,
    "ONNX, torch, SQL, JSON with JavaScript": exported,
    "saved without pickle": saved,
    "command line, gates for CI": gates,
    "HTML report": page,
}


def test_every_row_where_we_have_something_is_run():
    plain = {"needs a compiled wheel", "years in use, size of its community", "---"}
    assert {row for row, cell in OURS.items() if "**" not in cell} - plain == set(RUN)


@pytest.mark.parametrize("row", RUN)
def test_it_is_there(row, tmp_path):
    run = RUN[row]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(tmp_path) if run.__code__.co_argcount else run()
