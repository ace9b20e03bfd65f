"""Reference values on (n, K) outputs: the code of papers 000, 002 and 003, netcal and verified_calibration."""

import json

import numpy as np
import pytest

from calibrant.metrics import BinnedState, accuracy, brier, calibration_error, cwece, ece, ece_kde, mce, nll, smece

CASES = ["k10", "k10m"]


def load(shared_data, case):
    data = np.load(shared_data / "oracle" / f"multi_{case}.npz")
    z = data["logits_eval"]
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return data["labels_eval"], e / e.sum(axis=1, keepdims=True)


def reference(shared_data, file):
    return json.loads((shared_data / "oracle" / file).read_text())


@pytest.mark.parametrize("case", CASES)
def test_paper_003(shared_data, case):
    y, p = load(shared_data, case)
    known = reference(shared_data, "ece_sweep.json")[f"multi_{case}_uncal_eval"]
    for norm in (1, 2):
        for view, name in (("top_label", "top_label"), ("class_wise", "marginal")):
            for edges, short in (("equal_width", "ew"), ("equal_mass", "em")):
                value = calibration_error(y, p, view=view, edges=edges, norm=norm)
                assert value == pytest.approx(known[f"{name}_{short}_ece_bin_b15_l{norm}"], abs=1e-9)
        for edges, short in (("equal_width", "ew"), ("equal_mass", "em")):
            value = calibration_error(y, p, estimator="sweep", edges=edges, norm=norm)
            assert value == pytest.approx(known[f"top_label_{short}_ece_sweep_l{norm}"], abs=1e-9)
            # Their "marginal" sweep pools all entries without saying so.
            value = calibration_error(y, p, view="pooled", estimator="sweep", edges=edges, norm=norm)
            assert value == pytest.approx(known[f"marginal_{short}_ece_sweep_l{norm}"], abs=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_paper_000(shared_data, case):
    y, p = load(shared_data, case)
    known = reference(shared_data, f"mixnmatch_{case}.json")["uncal"]
    assert ece_kde(y, p) == pytest.approx(known["ece_kde_order1"], abs=1e-4)
    assert ece_kde(y, p, norm=2) ** 2 == pytest.approx(known["ece_kde_order2"], abs=1e-4)
    # Their histogram keeps the scores in float32.
    assert ece(y, p, edges="equal_mass") == pytest.approx(known["ece_hist_eqmass15_order1"], abs=1e-6)
    assert nll(y, p) == pytest.approx(known["nll_normalised"], abs=1e-9)
    assert brier(y, p) == pytest.approx(known["brier_normalised_sumclass"], abs=1e-9)
    assert accuracy(y, p) == known["accuracy"]


@pytest.mark.parametrize("case", CASES)
def test_paper_002(shared_data, case):
    y, p = load(shared_data, case)
    known = reference(shared_data, f"imax_{case}.json")
    assert ece(y, p, bins=100) == pytest.approx(known["uncal_sigmoid_logodds"]["top_1_dECE"], abs=1e-9)
    value = cwece(y, p, bins=100, threshold="1/K")
    assert value == pytest.approx(known["uncal_sigmoid_logodds"]["cw_dECE"], abs=1e-9)
    # I-Max edges from another start: near, not equal.
    assert ece(y, p, bins=100, edges="imax") == pytest.approx(known["uncal_sigmoid_logodds"]["top_1_iECE"], abs=0.02)
    outputs = np.load(shared_data / "oracle" / f"imax_{case}.npz")
    # Where bins give the same answer theirs stay apart and ours are one; the shared map's answers all differ.
    marginals, names = outputs["sCW_imax_eval_probs"], known["sCW_imax"]
    top = calibration_error(y, marginals, estimator="exact", marginals=True)
    assert top == pytest.approx(names["top1_quantECE"], abs=1e-9)
    for threshold, name in ((None, "none"), ("1/K", "1overK")):
        value = calibration_error(y, marginals, view="marginals", estimator="exact", threshold=threshold)
        assert value == pytest.approx(names[f"cw_quantECE_thr_{name}"], abs=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_other_libraries(shared_data, case):
    y, p = load(shared_data, case)
    known = reference(shared_data, "other_libraries.json")[f"multi_{case}"]
    assert ece(y, p) == pytest.approx(known["netcal_ECE15_multiclass"], abs=1e-9)
    assert ece(y, p) == pytest.approx(known["vc_get_ece"], abs=1e-9)
    assert ece(y, p) == pytest.approx(known["toplabel"]["relplot_binnedECE_15"], abs=1e-14)
    assert mce(y, p) == pytest.approx(known["toplabel"]["netcal_MCE_15_ew"], abs=1e-9)
    for bins in (10, 15):
        value = calibration_error(y, p, estimator="debiased", edges="equal_width", bins=bins)
        assert value == pytest.approx(known["toplabel"][f"vc_debiased_l2_ew{bins}_seed0"], abs=1e-9)
    for width in (None, 0.01, 0.05, 0.1):
        wanted = known["toplabel"]["relplot_smECE" if width is None else f"relplot_smECE_sigma{width}"]
        assert smece(y, p, width=width, grid="relplot") == pytest.approx(wanted, abs=1e-14)
    state = BinnedState(bins=10).update(y[:300], p[:300]).update(y[300:], p[300:])
    assert state.finalise(norm=2) == pytest.approx(known["toplabel"]["vc_plugin_l2_ew10"], abs=1e-9)


def test_edge_cases_of_paper_003(shared_data):
    cases = reference(shared_data, "ece_sweep.json")["EDGE"]
    compared = 0
    for name, case in cases.items():
        y, p = np.array(case["labels"]), np.array(case["scores"])
        for norm in (1, 2):
            value = calibration_error(y, p, bins=15, norm=norm)
            assert value == pytest.approx(case[f"ew_ece_bin_b15_l{norm}"], abs=1e-9), name
            if case["em_ece_sweep_nbins"] >= len(p) - 1 or len(np.unique(p)) < len(p):
                continue  # their sweep stops at n - 1, and splits ties by row order
            value = calibration_error(y, p, estimator="sweep", norm=norm)
            assert value == pytest.approx(case[f"em_ece_sweep_l{norm}"], abs=1e-9), name
            compared += 1
    assert compared
