"""How strong the parts of a linear map should be held, by the evidence of the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._path import solve
from ._problem import Problem

__all__ = ["Evidence", "maximise_evidence"]

_ROUNDS = 4
_LOOSE = 50.0  # precisions need no sharp optimum
_BOUNDS = (1e-2, 1e8)
_CLASSES = 48  # classes from which the counts of well-determined parameters are extrapolated, where there are more


@dataclass(frozen=True, eq=False)
class Evidence:
    """Precisions by group, the parameters they lead to, and the passes it took."""

    precisions: NDArray[np.float64]
    theta: NDArray[np.float64]
    passes: int


def maximise_evidence(problem: Problem, groups: NDArray[np.int64], start: NDArray[np.float64]) -> Evidence:
    """Find the precision of each group of parameters that maximises the marginal likelihood (MacKay 1992).

    Parameters
    ----------
    problem : Problem
    groups : int array of the shape of the parameters
        Parameters of one group share a Gaussian prior N(0, 1/α).
    start : array
        α of each group to begin with.

    Notes
    -----
    At the penalised optimum, α = γ / Σ θ² with γ = Σ (1 - α (H⁻¹)_jj), the number of parameters that the rows
    determine, where H is the Hessian of the penalised loss. H is taken as its blocks, one a class: the features of a
    class speak together, the classes apart.
    """
    alpha, theta, passes = start.astype(np.float64), np.zeros(problem.size), 0
    for _ in range(_ROUNDS):
        found = solve(problem, alpha[groups], theta, _LOOSE)
        theta, passes = found.theta, passes + found.passes + 1
        counts = _determined(problem, theta, alpha, groups)
        sizes = np.bincount(groups, weights=theta**2, minlength=len(alpha))
        new = np.clip(counts / np.maximum(sizes, 1e-300), *_BOUNDS)
        settled = np.abs(np.log(new / alpha)).max() < 0.2
        alpha = new
        if settled:
            break
    return Evidence(alpha, theta, passes)


def _determined(
    problem: Problem, theta: NDArray[np.float64], alpha: NDArray[np.float64], groups: NDArray[np.int64]
) -> NDArray[np.float64]:
    """γ by group, from the blocks of all classes or of an evenly spaced choice of them."""
    k = problem.k
    classes = np.unique(np.linspace(0, k - 1, min(k, _CLASSES)).round().astype(np.int64))
    by_class = np.column_stack([groups[:-k].reshape(k, -1), groups[-k:]])
    counts = np.zeros(len(alpha))
    for c, block in zip(classes, problem.blocks(theta, classes), strict=True):
        own = alpha[by_class[c]]
        np.fill_diagonal(block, block.diagonal() + own)
        shares = 1.0 - own * np.diag(np.linalg.inv(block))
        counts += np.bincount(by_class[c], weights=np.clip(shares, 0.0, 1.0), minlength=len(alpha))
    return counts * (k / len(classes))
