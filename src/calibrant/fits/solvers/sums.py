"""What a pass tells a search over weights on the simplex."""

from __future__ import annotations

from typing import NamedTuple

from ...types import Array


class Sums(NamedTuple):
    """The value, and gradient and Hessian in the weights and, after them, in the unknowns beside them."""

    value: float
    gradient: Array
    hessian: Array
