"""Algorithm 1 of paper 004 in loops over rows and bins, on confidences of few values."""

import numpy as np
import pytest

from calibrant.maps.hoki_design import bin_of, binned_error, design, replay
from calibrant.maps.hoki_rows import Noise, Seen, rows_seen
from calibrant.passes import Block


def rows(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 30))
    right = rng.integers(0, 2, n) * 1.0
    return rng.integers(0, 5, n) / 4, right, rng.choice([0.5, 1.0, 2.0], n), rng.integers(0, 9, n) / 8


def bins_of(p, bins):
    """Bins (j/J, (j+1)/J], with 0 in the first."""
    return [next(j for j in range(bins) if x <= (j + 1) / bins) for x in p]


def plain(kept, right, w, start, bins, most):
    p, place = list(start), bins_of(start, bins)
    steps, errors, seen, since = [], [], [], 0
    for step in range(most):
        seen.append(place)
        table = []
        for j in range(bins):
            own = [i for i in range(len(p)) if place[i] == j]
            same, other = sum(w[i] * kept[i] for i in own), sum(w[i] * (1 - kept[i]) for i in own)
            if not own:
                table.append((0.0, 0.0, False))
            elif same <= 0 or other <= 0:
                mean = sum(w[i] * right[i] for i in own) / sum(w[i] for i in own)
                table.append((mean, mean, True))
            else:
                alpha = sum(w[i] * right[i] * kept[i] for i in own) / same
                beta = sum(w[i] * right[i] * (1 - kept[i]) for i in own) / other
                table.append((alpha, beta, True))
        p = [
            min(max((a - b) * k + b, 0.0), 1.0)
            for (a, b, _), k in ((table[j], k) for j, k in zip(place, kept, strict=True))
        ]
        moved = bins_of(p, bins)
        gaps = [sum(w[i] * (right[i] - p[i]) for i in range(len(p)) if moved[i] == j) for j in range(bins)]
        errors.append(sum(map(abs, gaps)))
        steps.append(table)
        still = sum(w[i] for i in range(len(p)) if moved[i] != place[i]) / sum(w)
        place, since = moved, step
        if moved in seen:
            since = seen.index(moved)
            break
    last = since + min(range(len(errors) - since), key=lambda i: errors[since + i]) + 1
    return steps[:last], still <= 0.01


@pytest.mark.parametrize("bins", [1, 2, 4])
def test_the_steps_are_those_of_rows(bins):
    for seed in range(40):
        kept, right, w, start = rows(seed)
        for most in (1, 2, 50):
            found = design(kept, right, w, start, bins, most)
            steps, converged = plain(kept, right, w, start, bins, most)
            if len(found.alphas) != len(steps):  # two steps with the same error but for rounding
                continue
            told = np.array(steps)
            filled = told[:, :, 2] > 0
            assert (found.filled == filled).all()
            np.testing.assert_allclose(found.alphas[filled], told[:, :, 0][filled], atol=1e-12)
            np.testing.assert_allclose(found.betas[filled], told[:, :, 1][filled], atol=1e-12)
            assert found.converged == converged
            p = list(start)
            for table in steps:
                for i, j in enumerate(bins_of(p, bins)):
                    alpha, beta, there = table[j]
                    p[i] = min(max((alpha - beta) * kept[i] + beta, 0), 1) if there else p[i]
            np.testing.assert_allclose(replay(found, kept, start), p, atol=1e-12)


def test_bins_are_closed_above_and_their_error_is_what_sums_do_not_cancel():
    p = np.array([0.0, 0.25, 0.2500001, 0.5, 0.75, 1.0])
    assert bin_of(p, 4).tolist() == [0, 0, 1, 1, 2, 3]
    right = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
    assert binned_error(p, right, 4) == pytest.approx((0.75 + 0.2499999 + 0.75 + 0.0) / 6)


def test_at_most_as_many_steps_as_asked_for_and_most_of_them_alike():
    same = sum(
        len(design(*rows(seed), bins, 50).alphas) == len(plain(*rows(seed), bins, 50)[0])
        for seed in range(40)
        for bins in (1, 2, 4)
    )
    assert same > 110  # of 120: the others have two steps of one error, of which rounding takes one


def test_rows_without_a_weight_are_not_seen(rng):
    """Columns are sorted by what a row says, and keep together; losses are those of the label's share."""
    z, labels, w = rng.normal(size=(12, 3)), rng.integers(0, 3, 12), np.tile([0.0, 1.0, 2.5], 4)
    found = Seen.of(rows_seen(Block(z, labels, w, 3), Noise("gaussian", 1.0, None)))
    own = np.flatnonzero(w > 0)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    assert len(found.weights) == 8
    assert (np.diff(found.kept) >= 0).all()
    np.testing.assert_allclose(np.sort(found.confidence), np.sort(p.max(axis=1)[own]), rtol=1e-9)
    wanted = [(p[i].max(), -np.log(p[i, labels[i]]), w[i], labels[i] == z[i].argmax()) for i in own]
    told = zip(found.confidence, found.before, found.weights, found.right, strict=True)
    np.testing.assert_allclose(sorted(told), sorted(wanted), rtol=1e-9)
    np.testing.assert_allclose(found.losses(found.confidence, 0.0), found.before, rtol=1e-9)
    held = found.losses(np.where(np.arange(8) % 2, 0.0, 1.0), 0.1)
    c = np.where(np.arange(8) % 2, 0.1, 0.9)
    np.testing.assert_allclose(held, -np.log(np.where(found.right > 0, c, (1 - c) * found.rest)))
