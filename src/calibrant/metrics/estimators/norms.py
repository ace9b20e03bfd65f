"""Norms: how gaps become one number."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from ...arrays import inner
from ...errors import InvalidInput
from ...parameters import is_one_of
from ...types import Array

Norm: TypeAlias = Literal[1, 2, "max"]


def check_norm(norm: object, allowed: tuple[object, ...] = (1, 2, "max")) -> None:
    """Refuse a norm that the estimator does not have."""
    if isinstance(norm, bool) or not is_one_of(norm, allowed):
        raise InvalidInput("no such norm", seen=repr(norm), allowed=" or ".join(map(repr, allowed)))


def norm_of(share: Array, gap: Array, norm: Norm) -> float:
    """Return (Σ share·gap^norm)^(1/norm), the largest gap for "max"; shares sum to one."""
    if len(gap) == 0:
        return 0.0
    if norm == "max":
        return float(gap.max())
    return inner(share, gap) if norm == 1 else float(np.sqrt(inner(share, gap**2)))
