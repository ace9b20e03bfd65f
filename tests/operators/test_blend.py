"""How a mixture answers: as its parts do, whatever is put together once."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibrant import (
    Chain,
    Identity,
    MatrixScaling,
    Mixture,
    OrderPreservingScaling,
    StructuredScaling,
    TemperatureScaling,
    Uniform,
    load,
)
from calibrant.arrays import keep_top
from calibrant.maps.scaling._structured_part import StructuredPart
from calibrant.validation.saturation import ZERO_LOG, finite_logs, floored


def bent(n=900, k=5, seed=0, dtype=np.float64):
    """Over-confident scores in which classes are confused and one is too low, so that every form has a share."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 1.5
    truth = z + 0.4 * z[:, ::-1]
    y = (truth + rng.gumbel(size=z.shape)).argmax(axis=1)
    z = 2.0 * z
    z[:, 0] -= 1.0
    return z.astype(dtype), y


def by_parts(fitted, rows):
    """What the parts of a mixture answer one by one."""
    answers = [weight * part._map(rows) for weight, part in zip(fitted.weights_, fitted.parts_, strict=True)]
    return sum(answers)


def test_parts_of_every_kind_beside_one_another():
    z, y = bent()
    curve = OrderPreservingScaling()
    parts = [
        TemperatureScaling(),
        StructuredPart("own"),
        Uniform(),
        Chain([curve, StructuredPart("centred")]),
        Chain([curve, TemperatureScaling(), StructuredPart("plain")]),
        Chain([StructuredPart("plain")]),
        Chain([curve, Identity()]),
        MatrixScaling(),
    ]
    weights = (0.1, 0.2, 0.05, 0.25, 0.15, 0.05, 0.1, 0.1)
    fitted = Mixture(parts, weights=weights).fit(z, y)
    for rows in (z[:7], z):
        assert_allclose(fitted.predict_proba(rows), by_parts(fitted, rows), rtol=0, atol=1e-12)


def test_nothing_is_kept_in_the_map_and_a_copy_answers_alike(tmp_path):
    z, y = bent()
    fitted = StructuredScaling().fit(z, y)
    answer, mixture = fitted.predict_proba(z[:3]), fitted.chain_.parts_[1]
    assert [name for name in vars(mixture) if name.startswith("_")] == ["_made_as"]
    fitted.save(tmp_path / "m.calibrant")
    for other in (copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted)), load(tmp_path / "m.calibrant")):
        assert_array_equal(other.predict_proba(z[:3]), answer)


def test_what_is_learnt_anew_is_answered_anew():
    z, y = bent()
    fitted = Mixture([StructuredPart("centred"), StructuredPart("own")], weights=(0.5, 0.5)).fit(z, y)
    before = fitted.predict_proba(z[:3])
    fitted.fit(z[:, ::-1], y)
    assert np.abs(fitted.predict_proba(z[:3]) - before).max() > 0.01
    assert_allclose(fitted.predict_proba(z[:3]), by_parts(fitted, z[:3]), rtol=0, atol=1e-12)
    part = fitted.parts_[0]
    assert isinstance(part, StructuredPart)
    part.weights_ = 2 * part.weights_
    assert_allclose(fitted.predict_proba(z[:3]), by_parts(fitted, z[:3]), rtol=0, atol=1e-12)
    fitted.weights_ = np.array([1.0, 0.0])
    assert_allclose(fitted.predict_proba(z[:3]), part._map(z[:3]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 5, 130])
def test_a_mixture_with_the_uniform_distribution_links_as_it_answers(k, dtype):
    z, y = bent(k=k, dtype=dtype)
    level = 0.01
    fitted = Mixture([OrderPreservingScaling(), Uniform()], weights=(1 - level, level)).fit(z, y)
    assert_allclose(fitted.link_logits(z), np.log(fitted._map(z)), rtol=2e-6 if dtype == np.float32 else 1e-14)
    assert_array_equal(fitted.link_logits(z).argmax(axis=1), z.argmax(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_of_answers(rng, dtype):
    p = rng.dirichlet(np.full(7, 0.2), 500).astype(dtype)
    p[0, :3], p[1, 4], p[2, 1:] = 0, np.finfo(dtype).smallest_subnormal, 0
    p[3] = [1, 1 - np.finfo(dtype).epsneg, *np.logspace(-30, -1, 5)]
    z = rng.normal(size=p.shape).astype(dtype)
    z[0, 1], z[5, 2] = -np.inf, -np.inf
    with np.errstate(divide="ignore"):
        expected = np.log(p.astype(np.float64)).astype(dtype)
    expected = floored(expected, np.isneginf(expected) & ~np.isneginf(z))
    assert_allclose(finite_logs(p, z), expected, rtol=4 * np.finfo(dtype).eps)
    assert np.isneginf(finite_logs(p, z)[0, 1])
    assert_allclose(finite_logs(p, z)[2, 1:], np.log(p[2, 0]) + ZERO_LOG, rtol=1e-5)
    assert_array_equal(finite_logs(np.asfortranarray(p), z[:, :3])[1:], finite_logs(p, z)[1:])  # embeddings


def test_logarithms_of_a_mixture_keep_the_top():
    z = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0]])
    p = np.array([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2]])
    assert_allclose(np.exp(finite_logs(p, z, 0.9, 0.1 / 3)), 0.9 * p + 0.1 / 3, rtol=1e-15)
    kept = finite_logs(p, z, 0.9, 0.1 / 3, keeps_top=True)
    assert_allclose(kept, np.log(keep_top(0.9 * p + 0.1 / 3, z)), rtol=1e-15)
    assert kept[0, 1] > kept[0, 0]
    assert kept[1, 1] == kept[1, 0]
