"""torch: the same answers as predict_proba, and everything a module is expected to do."""

import warnings

import numpy as np
import pytest
from tests.exports.export_cases import ALL, CURVES, fitted, hard_rows, problem, quietly, tolerance

from calibrant import Binning, CalibrantError, PlattScaling, exports, make

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_every_map_answers_as_predict_proba(name, kind):
    calibrator, rows = fitted(name, kind), hard_rows(name, kind)
    answer = calibrator.to_torch()(torch.from_numpy(rows)).numpy()
    wanted = calibrator.predict_proba(rows)
    assert answer.dtype == wanted.dtype
    np.testing.assert_allclose(answer, wanted, rtol=0, atol=tolerance(name, kind))
    if calibrator.traits.preserves_accuracy and name not in ("identity", "uniform"):
        assert (calibrator.classes_[answer.argmax(axis=1)] == calibrator.predict(rows)).all()


def test_what_predict_proba_refuses_has_an_answer():
    rows = torch.zeros(3, 4, dtype=torch.float64)
    rows[0, 1], rows[1, 1], rows[2] = float("nan"), float("inf"), float("-inf")
    answer = fitted("ets").to_torch()(rows)
    assert torch.isnan(answer[0]).all()
    assert answer[1:].tolist() == [[0.0, 1.0, 0.0, 0.0], [0.25] * 4]


@pytest.mark.parametrize("name", ["ts", "irm", "sms", "hoki"])
def test_it_scripts(name):
    module, rows = fitted(name).to_torch(), torch.from_numpy(hard_rows(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, that scripting is old
        scripted = torch.jit.script(module)
    assert torch.equal(scripted(rows), module(rows))


@pytest.mark.parametrize("name", ["ts", "irova", "sms", "bts"])
def test_it_exports_for_any_number_of_rows(name):
    module, rows = fitted(name).to_torch(), torch.from_numpy(hard_rows(name))
    program = torch.export.export(module, (rows,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    for some in (rows, rows[:7]):
        assert torch.equal(program.module()(some), module(some))


@pytest.mark.parametrize("name", ["ts", "ets", "vector", "matrix", "platt", "beta", "gp", "sms"])
def test_it_has_gradients(name):
    module = fitted(name).to_torch()
    rows = torch.from_numpy(hard_rows(name)[60:66].copy()).requires_grad_()
    assert torch.autograd.gradcheck(module, (rows,), eps=1e-6, atol=1e-5)


def test_steps_have_a_gradient_of_zero():
    rng = np.random.default_rng(0)
    s = rng.normal(size=300)
    y = (rng.random(300) < 1 / (1 + np.exp(-s))).astype(int)
    module = quietly(Binning(), s, y).to_torch()
    x = torch.linspace(-1, 1, 9, dtype=torch.float64, requires_grad=True)
    answer = module(x)
    assert not answer.requires_grad or torch.autograd.grad(answer[:, 1].sum(), x)[0].abs().max() == 0


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_it_follows_the_dtype_and_no_cast_of_the_model_rounds_it(kind):
    dtype = getattr(torch, kind)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), fitted("irova").to_torch()).to(dtype)
    rows = torch.zeros(2, 3, dtype=dtype)
    answer = model(rows)
    assert answer.dtype == dtype
    logits = model[0](rows)
    wanted = fitted("irova").predict_proba(logits.detach().to(torch.float64 if kind == "float64" else torch.float32))
    np.testing.assert_allclose(answer.detach().to(torch.float64), wanted, rtol=0, atol=1e-2 if "16" in kind else 1e-5)
    assert not list(model[1].parameters())


def test_a_state_dict_carries_it():
    module = fitted("platt").to_torch()
    other = fitted("platt").to_torch()
    for buffer in other.buffers():
        buffer.zero_()
    other.load_state_dict(module.state_dict())
    rows = torch.from_numpy(hard_rows("platt"))
    assert torch.equal(module(rows), other(rows))


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_score_of_either_shape(shape):
    rng = np.random.default_rng(1)
    s = rng.normal(size=100)
    calibrator = quietly(PlattScaling(), s, (rng.random(100) < 0.4).astype(int))
    answer = calibrator.to_torch()(torch.from_numpy(s).reshape(shape))
    np.testing.assert_allclose(answer, calibrator.predict_proba(s), rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", CURVES)
def test_curves_fitted_in_double_precision_and_asked_in_single(name):
    module, rows = fitted(name, "float64").to_torch(), problem("float32")[0]
    answer = module(torch.from_numpy(rows)).numpy()
    wanted = fitted(name, "float64").predict_proba(rows)
    np.testing.assert_allclose(answer, wanted, rtol=0, atol=tolerance(name, "float32"))


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", CURVES)
def test_curves_of_scores_that_say_far_too_much(name, kind):
    """As the log-probabilities of naive Bayes do: most knots are where a probability is zero in double precision."""
    rng = np.random.default_rng(0)
    z = 300 * rng.normal(size=(400, 4))
    y = np.where(rng.random(400) < 0.6, z.argmax(axis=1), rng.integers(0, 4, 400))
    calibrator = quietly(make(name), z.astype(kind), y)
    rows = np.concatenate([z[:80], 300 * rng.normal(size=(80, 4))]).astype(kind)
    answer = calibrator.to_torch()(torch.from_numpy(rows)).numpy()
    atol = 1e-12 if kind == "float64" else tolerance(name, kind)
    np.testing.assert_allclose(answer, calibrator.predict_proba(rows), rtol=0, atol=atol)


def test_single_precision_for_devices_without_double():
    rows = hard_rows("imax", "float32")[:90]
    module = fitted("imax", "float32").to_torch(precision="single")
    assert all(buffer.dtype != torch.float64 for buffer in module.buffers())
    answer = module(torch.from_numpy(rows)).numpy()
    wanted = fitted("imax", "float32").predict_proba(rows)
    assert (np.abs(answer - wanted) > 2e-6).any(axis=1).mean() < 0.03  # a score may be rounded over an edge
    with pytest.raises(CalibrantError, match="no such precision"):
        exports.to_torch(fitted("imax"), precision="half")
