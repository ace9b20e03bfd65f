"""Whatever finite scores come in, a fit ends in a finite map or in an error of ours."""

import warnings

import numpy as np
import pytest
from zoo import hostile_problems

from calibrant import CalibrantError, CalibrationWarning, make
from calibrant.registry import names

ZOO = list(hostile_problems())
MAPS = [name for name in names() if name not in ("kcal", "kcal-linear")]  # which see embeddings
# Maps whose own loss is the one they report: they start from the scores as they are and only descend.
DESCEND = ("identity", "ts", "ets", "bts", "iop", "vector", "matrix", "matrix-odir", "dirichlet", "dirichlet-odir")


def test_the_zoo_is_large_and_has_every_kind():
    assert len(ZOO) >= 60
    assert len({animal.name for animal in ZOO}) == len(ZOO)
    assert {animal.scores.dtype.char for animal in ZOO} == {"f", "d"}
    assert {2, 200} <= {animal.n_classes for animal in ZOO}
    assert max(np.abs(animal.scores).max() for animal in ZOO) > 1e30


@pytest.mark.parametrize("name", MAPS)
def test_a_fit_survives(name):
    faults = []
    for animal in ZOO:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a RuntimeWarning of NumPy's is a fault
            warnings.simplefilter("ignore", CalibrationWarning)
            fault = _fault_of(name, animal)
        faults += [f"{animal.name}: {fault}"] if fault else []
    assert not faults, "\n".join(faults)


def _fault_of(name, animal):
    calibrator = make(name, inputs=animal.inputs, classes=range(animal.n_classes))
    try:
        fitted = calibrator.fit(animal.scores, animal.labels, animal.weights)
        p = fitted.predict_proba(animal.scores)
    except CalibrantError:
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    report = fitted.fit_report_
    if not (np.isfinite(p).all() and (p >= 0).all() and np.allclose(p.sum(axis=1), 1, atol=1e-5)):
        return "no distribution"
    if p.dtype != animal.scores.dtype:
        return f"answers in {p.dtype}"
    if not np.isfinite([report.loss_before, report.loss_after]).all():
        return f"losses {report.loss_before} and {report.loss_after}"
    if name in DESCEND and report.loss_after > report.loss_before * (1 + 1e-6) + 1e-9:
        return f"worse on its own rows: {report.loss_after} against {report.loss_before}"
    return ""
