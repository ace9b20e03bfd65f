"""Priors, evidence and the path of strengths on a problem that needs no rows: linear regression."""

from dataclasses import dataclass

import numpy as np
import pytest

from calibrant.fits.evidence import fit_by_evidence, fit_with
from calibrant.fits.path import choose
from calibrant.fits.priors import LEAST, Prior, odir, parts_of, ridge, structured
from calibrant.fits.problem import PlainOutlook, Point, Sums, solve
from calibrant.passes import Block, Data, in_memory


@dataclass(frozen=True, eq=False)
class Whole:
    """The Hessian as one matrix."""

    hessian: np.ndarray

    def metric(self, penalty):
        return WholeMetric(np.linalg.inv(self.hessian + np.diag(penalty)))

    def outlook(self, theta, gradient, prior):
        return PlainOutlook(self, theta, gradient, prior)


@dataclass(frozen=True, eq=False)
class WholeMetric:
    inverse: np.ndarray

    def apply(self, vector):
        return self.inverse @ vector

    def diagonal(self):
        return np.diagonal(self.inverse)


@dataclass(frozen=True, eq=False)
class Regression:
    """½ Σ (target - x θ)², the target being the last column."""

    data: Data
    sharp: bool = True

    @property
    def size(self):
        return self.data.columns - 1

    def on(self, data):
        return Regression(data)

    def sums(self, theta):
        return Sums(*self.data.reduce(lambda block: squares(block, theta)))

    def curvature(self, theta):
        return self.sums(theta), Whole(self.data.reduce(lambda block: block.logits[:, :-1].T @ block.logits[:, :-1]))


def squares(block, theta):
    residual = block.logits[:, -1] - block.logits[:, :-1] @ theta
    return 0.5 * float(residual @ residual), -block.logits[:, :-1].T @ residual


def regression(rng, truth, n=400):
    x = rng.normal(size=(n, len(truth)))
    rows = np.column_stack([x, x @ truth + rng.normal(size=n)])
    return Regression(in_memory(Block(rows, np.zeros(n, dtype=np.int64), None, 1)))


def one_group(size):
    return Prior(np.zeros(size, dtype=np.int64), np.ones(size))


def test_a_fit_with_given_precisions_is_ridge_regression(rng):
    problem = regression(rng, np.array([1.0, -2.0, 0.5]))
    x, target = np.split(problem.data.rows().logits, [-1], axis=1)
    expected = np.linalg.solve(x.T @ x + np.diag(np.full(3, 5.0 + LEAST)), x.T @ target)[:, 0]
    fitted = fit_with(problem, one_group(3), np.array([5.0]))
    np.testing.assert_allclose(fitted.point.theta, expected, rtol=1e-6)
    values = np.linalg.eigvalsh(x.T @ x)
    assert fitted.effective == pytest.approx((values / (values + 5.0 + LEAST)).sum(), rel=1e-9)


def test_evidence_finds_the_precision_that_parameters_were_drawn_with(rng):
    truth = rng.normal(size=200) * 0.3  # a precision of 11
    fitted = fit_by_evidence(regression(rng, truth, 2000), one_group(200), np.array([400.0]))
    assert fitted.precisions[0] == pytest.approx(11.0, rel=0.25)
    assert 150 < fitted.effective < 200


def test_evidence_adds_nothing_where_the_loss_falls_by_less_than_chance_would_bring(rng):
    x = np.linalg.qr(rng.normal(size=(400, 51)))[0] * 20
    rows = np.column_stack([x[:, :50], x[:, 50] + 0.01 * x[:, 0]])  # nearly independent of all features
    problem = Regression(in_memory(Block(rows, np.zeros(400, dtype=np.int64), None, 1)))
    fitted = fit_by_evidence(problem, one_group(50), np.array([10.0]))
    assert np.isinf(fitted.precisions).all()
    assert not fitted.point.theta.any()
    assert fitted.effective == 0.0


def test_groups_have_precisions_of_their_own(rng):
    truth = np.concatenate([rng.normal(size=60), np.zeros(60)])
    prior = Prior(np.repeat([0, 1], 60), np.ones(120))
    strong, weak = fit_by_evidence(regression(rng, truth, 1000), prior, np.array([10.0, 10.0])).precisions
    assert strong < 3
    assert weak > 100


def test_the_path_ends_where_held_out_rows_lose_least(rng):
    problem = regression(rng, np.concatenate([rng.normal(size=5), np.zeros(60)]) * 0.3, 150)
    chosen = choose(problem, np.ones(65))
    assert chosen.strengths[0] == np.inf
    assert chosen.strength == chosen.strengths[int(np.argmin(chosen.curve))]
    assert len(chosen.held) == len(chosen.parameters) == 5
    assert sum(held.n for held in chosen.held) == 150
    losses = [problem.on(h).sums(t).loss for h, t in zip(chosen.held, chosen.parameters, strict=True)]
    assert sum(losses) / 150 == pytest.approx(min(chosen.curve))


def test_solve_says_what_the_loss_is_without_its_penalty(rng):
    problem = regression(rng, np.array([1.0, -2.0]))
    start, near = Point.zero_and_curvature(problem)
    penalty = np.array([3.0, 4.0])
    point = solve(problem, penalty, start, near.metric(penalty)).point
    expected = problem.sums(point.theta)
    assert point.sums.loss == pytest.approx(expected.loss)
    np.testing.assert_allclose(point.sums.gradient, expected.gradient, atol=1e-6)


def test_priors_of_linear_maps():
    np.testing.assert_array_equal(parts_of(2, 4), [0, 2, 0, 2])
    np.testing.assert_array_equal(parts_of(2, 8), [0, 1, 3, 2, 1, 0, 3, 2])
    np.testing.assert_array_equal(odir(3).shape.reshape(3, 4)[0], [0, 1, 1, 0.5])
    np.testing.assert_array_equal(ridge(3, 12).shape, np.ones(12))
    np.testing.assert_array_equal(odir(3).penalty(np.array([9.0, 2.0, 4.0]))[:4], np.array([0, 2, 2, 2]) + LEAST)
    np.testing.assert_array_equal(structured(3), [6, 12, 6, 6])
