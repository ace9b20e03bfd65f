"""What every figure and every law of an interval says of rows of all kinds, and of their blocks, is what it was."""

import warnings
from dataclasses import asdict

import numpy as np
import pytest
from tests.kept.comparing import check
from tests.kept.test_kept_metrics import COMMON, COUNTS, FEW, FRACTIONS, IN_CLUSTERS, MANY, RARE_IN_CLUSTERS, SURE, TIED

from calibrant import metrics
from calibrant.errors import CalibrantError
from calibrant.metrics.inference.resampling import Sampling
from calibrant.metrics.measuring import Measuring
from calibrant.metrics.table import TABLE
from calibrant.metrics.views.forecasts import read

Y, P = COMMON
EVENTS = {
    "plain": (Y[:150], P[:150], {}),
    "counts": (Y[:150], P[:150], {"w": COUNTS[:150]}),
    "fractions": (Y[:150], P[:150], {"w": FRACTIONS[:150]}),
    "clusters": (*(part[:160] for part in IN_CLUSTERS[:2]), {"clusters": IN_CLUSTERS[2][:160]}),
    "weighted clusters": (
        *(part[:160] for part in IN_CLUSTERS[:2]),
        {"clusters": IN_CLUSTERS[2][:160], "w": np.ceil(FRACTIONS[:160])},
    ),
    "one cluster": (Y[:60], P[:60], {"clusters": np.zeros(60, dtype=int)}),
    "two clusters": (Y[:60], P[:60], {"clusters": np.arange(60) % 2}),
    "rare clusters": (*(part[:240] for part in RARE_IN_CLUSTERS[:2]), {"clusters": RARE_IN_CLUSTERS[2][:240]}),
    "ties": (*TIED, {}),
    "few rows": (*FEW, {}),
    "sure": (SURE[0][:150], SURE[1][:150], {}),
    "one score": (Y[:80], np.full(80, 0.3), {}),
    "no event": (np.zeros(40, int), P[:40], {}),
    "all events": (np.ones(40, int), P[:40], {"w": COUNTS[:40]}),
    "separable": ((P[:40] > 0.5).astype(int), P[:40], {}),
    "zeros": (Y[:30], np.zeros(30), {}),
    "exact": (Y[:50], np.round(P[:50]), {}),
    "one row": (Y[:1], P[:1], {}),
    "two rows": (np.array([0, 1]), np.array([0.25, 0.5]), {}),
    "three rows": (np.array([0, 1, 1]), np.array([0.25, 0.5, 0.5]), {"w": np.array([1.0, 0.0, 2.0])}),
}
CURVES = ("ici", "e50", "e90", "emax", "variational_error", "over_confidence", "under_confidence")
# A curve that few rows hardly determine, or ties: its last bits decide what its quantiles or bias are.
FRAGILE = ("few rows", "separable", "sure", "one cluster", "exact", "zeros", "one score", "no event", "all events")
GIVEN = {"net_benefit": {"threshold": 0.3}, "recalibration_benefit": {"threshold": 0.3}, "top_k_accuracy": {"k": 1}}


def told(function, *given, **more):
    try:
        found = function(*given, **more)
    except CalibrantError as refusal:
        return {"refused": str(refusal)}
    return asdict(found) if hasattr(found, "__dataclass_fields__") else found


def forecasts_of(y, p, options):
    found = read(y, p, options.get("w"))
    return found.clustered(options["clusters"]) if "clusters" in options else found


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("of", EVENTS)
def test_laws_of_an_event(of):
    y, p, options = EVENTS[of]
    forecasts, found = forecasts_of(y, p, options), {}
    for name, row in TABLE.items():
        if name in CURVES and (of in FRAGILE or of == "ties" or len(y) < 60):
            continue
        sampling = Sampling(19, np.random.default_rng(4), slow=9)
        given = GIVEN.get(name, {})
        found[f"{name} value"] = told(row.of, forecasts, **given)
        found[name] = told(row.interval, forecasts, 0.9, sampling, **given)
    check("laws", of, found)


ERRORS = ("ece_crossfit", "ece", "ece_sweep", "ece_debiased", "smece", "ks_error", "ecce", "mce", "ece_kde")
OPTIONS = {
    "class-wise": {"view": "class_wise"},
    "of a class": {"view": 1},
    "pooled": {"view": "pooled"},
    "above 1/K": {"view": "class_wise", "threshold": "1/K"},
    "above the prior": {"view": "class_wise", "threshold": "prior"},
    "above a floor": {"view": "class_wise", "threshold": "kcal"},
    "above a number": {"view": "class_wise", "threshold": 0.2},
    "squared": {"squared": True},
    "norm 2": {"norm": 2},
    "largest": {"norm": "max"},
    "Sturges": {"bins": "sturges"},
    "of equal mass": {"edges": "equal_mass", "bins": 4},
    "of given edges": {"edges": [0.0, 0.3, 0.35, 1.0]},
}


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("weights", [None, "counts", "clusters"])
@pytest.mark.parametrize("option", OPTIONS)
def test_laws_of_classes(option, weights):
    y, p = MANY[0][:120], MANY[1][:120]
    own = {None: {}, "counts": {"w": COUNTS[:120]}, "clusters": {"clusters": np.arange(120) // 4}}[weights]
    forecasts, found = forecasts_of(y, p, own), {}
    for name in ERRORS:
        sampling = Sampling(19, np.random.default_rng(4), slow=5)
        found[f"{name} value"] = told(TABLE[name].of, forecasts, **OPTIONS[option])
        found[name] = told(TABLE[name].interval, forecasts, 0.9, sampling, **OPTIONS[option])
    check("laws", f"classes, {option}, {weights}", found)


@pytest.mark.parametrize("of", ["an event", "classes"])
def test_laws_of_blocks(of):
    """Where rows came in blocks, resamples are of cells; the state is told as JSON would be, and merged."""
    (y, p), w = (COMMON, COUNTS) if of == "an event" else (MANY, COUNTS[:350])
    parts = [Measuring(resamples=19).update(y[i::2], p[i::2], sample_weight=w[i::2]) for i in range(2)]
    merged = parts[0].merge(Measuring.from_dict(parts[1].to_dict()))
    assert Measuring(resamples=19).merge(merged).summary is not None
    forecasts, found = merged.summary, {}
    for name, row in TABLE.items():
        if name in CURVES:
            continue
        for option in ("", "class-wise", "of a class", "pooled", "squared") if name in ERRORS else ("",):
            given = {**GIVEN.get(name, {}), **OPTIONS.get(option, {})}
            sampling = Sampling(19, np.random.default_rng(4), slow=5)
            try:
                found[f"{name} {option}"] = told(row.interval, forecasts, 0.9, sampling, **given)
            except (AttributeError, KeyError, TypeError):
                continue  # what needs whole rows is never asked of blocks
    for column in (0, 1):
        pairs = forecasts.one_class(column)
        found[f"class {column}"] = [pairs.total, float(pairs.scores @ pairs.weight_array), pairs.rows]
        of_rows = read(y, p, w).one_class(column)
        assert pairs.total == pytest.approx(of_rows.total)
        sums = [part.weight_array @ (part.outcomes - part.scores) for part in (pairs, of_rows)]
        # Half of the rows were told as JSON: their mean scores are rounded to half a hundred-thousandth of a cell, the
        # widest of which are the bins of a class.
        assert sums[0] == pytest.approx(sums[1], abs=0.5 * pairs.total * 0.5e-5 / 15)
    check("laws", f"blocks of {of}", found)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_results_say_what_they_are():
    """The properties and methods of what figures return."""
    y, p = COMMON
    better = p**1.25
    gain = metrics.calibration_gain(y, p, better)
    parts = metrics.brier_decomposition(y, p, sample_weight=FRACTIONS)
    curve = metrics.reliability_curve(y, p, bins=7, sample_weight=COUNTS)
    sample = metrics.measure(y, p, resamples=19, sample_weight=COUNTS, groups=np.arange(400) % 3)
    interval = sample["ece"] if hasattr(sample, "__getitem__") else None
    found = {
        "gain": [float(gain), *gain.interval(0.8), *gain.interval(0.99)],
        "parts": [parts.refinement, parts.resolution, parts.score, parts.uncertainty, parts.calibration],
        "curve": asdict(curve),
        "rate": sample.event_rate,
        "text": repr(sample),
        "json": sample.to_json(),
    }
    if interval is not None:
        found["ends"] = [interval.low, interval.high, interval.covers(interval.low), interval.covers(interval.high)]
        assert not interval.covers(interval.low - 1e-9)
        assert not interval.covers(interval.high + 1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check("laws", "results", found)
