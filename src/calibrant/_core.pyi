"""Types of the compiled kernels (cpp/bind.cpp)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

def row_tops(
    values: NDArray[Any], tolerance: float, marginals: bool, threads: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], int]: ...
def label_hits(
    values: NDArray[Any], labels: NDArray[np.int64], most: int, tolerance: float, marginals: bool, threads: int
) -> tuple[NDArray[np.bool_], int]: ...
def class_bins(
    values: NDArray[Any],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    edges: NDArray[np.float64],
    floors: NDArray[np.float64],
    threads: int,
) -> NDArray[np.float64]: ...
def pair_bins(
    scores: NDArray[np.float64],
    outcomes: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    edges: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def triweight(
    places: NDArray[np.float64], points: NDArray[np.float64], weights: NDArray[np.float64], h: float
) -> NDArray[np.float64]: ...
def sweep(
    values: NDArray[np.float64], prefix: NDArray[np.float64], equal_width: bool, norm: int
) -> tuple[int, float]: ...
def scan(values: NDArray[Any], tolerance: float, threads: int) -> tuple[int, int, int, int, int]: ...
def cell_sums(
    logits: NDArray[Any],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    groups: NDArray[np.int64],
    group_count: int,
    bits: int,
    first: NDArray[np.int32] | None,
    shift: NDArray[np.int32] | None,
    cells: int,
    threads: int,
) -> NDArray[np.float64]: ...
def bin_sums(
    logits: NDArray[Any],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    groups: NDArray[np.int64],
    values: NDArray[Any] | None,
    edges: NDArray[np.float64],
    threads: int,
) -> NDArray[np.float64]: ...
def cell_loss(scores: NDArray[np.float64], weights: NDArray[np.float64], outcomes: NDArray[np.float64]) -> float: ...
def bin_lift(
    logits: NDArray[Any],
    edges: NDArray[np.float64],
    table: NDArray[np.float64],
    normalize: bool,
    threads: int,
    out: NDArray[Any],
) -> None: ...
def bin_look_up(
    scores: NDArray[Any], edges: NDArray[np.float64], table: NDArray[np.float64], threads: int, out: NDArray[Any]
) -> None: ...
def imax(
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
    outcomes: NDArray[np.float64],
    starts: NDArray[np.int64],
    bins: int,
    affine: bool,
    uniforms: NDArray[np.float64],
    threads: int,
) -> list[tuple[NDArray[np.int64], NDArray[np.float64], bool, float, float]]: ...
def best_partition(weights: NDArray[np.float64], positives: NDArray[np.float64], bins: int) -> NDArray[np.int64]: ...
def temperature_sums(
    logits: NDArray[Any],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    places: NDArray[np.int64] | None,
    betas: NDArray[np.float64],
    loss: int,
    threads: int,
) -> NDArray[np.float64]: ...
def row_keys(values: NDArray[Any], labels: NDArray[np.int64], relative: bool, threads: int) -> NDArray[np.uint64]: ...
def temperature_rows(
    logits: NDArray[Any], labels: NDArray[np.int64], beta: float, threads: int
) -> NDArray[np.float64]: ...
def ensemble_sums(
    logits: NDArray[Any],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    beta: float,
    threads: int,
) -> NDArray[np.float64]: ...
def ensemble_apply(
    logits: NDArray[Any],
    beta: float,
    w_scaled: float,
    w_identity: float,
    w_uniform: float,
    threads: int,
    out: NDArray[Any],
) -> None: ...
def mixture_sums(
    columns: NDArray[np.float64], weights: NDArray[np.float64] | None, w: NDArray[np.float64], threads: int
) -> NDArray[np.float64]: ...
def convex_on_simplex(gram: NDArray[np.float64]) -> bool: ...
def best_quadratic(
    gram: NDArray[np.float64], linear: NDArray[np.float64], start: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def log_odds(logits: NDArray[Any], threads: int, out: NDArray[Any]) -> None: ...
def normalize_rows(logits: NDArray[Any], keep_top: bool, threads: int, marginals: NDArray[Any]) -> None: ...
def curve_sums(
    logits: NDArray[Any],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    knots: NDArray[np.float64],
    stations: NDArray[np.float64],
    values: NDArray[np.float64],
    beta: float,
    threads: int,
) -> NDArray[np.float64]: ...
def largest_surprise(logits: NDArray[Any], weights: NDArray[np.float64] | None, threads: int) -> float: ...
def curve_apply(
    logits: NDArray[Any],
    knots: NDArray[np.float64],
    stations: NDArray[np.float64],
    values: NDArray[np.float64],
    beta: float,
    threads: int,
    out: NDArray[Any],
) -> None: ...
def top_log_odds(logits: NDArray[Any], threads: int) -> NDArray[np.float64]: ...
def binwise_apply(
    logits: NDArray[Any],
    edges: NDArray[np.float64],
    betas: NDArray[np.float64],
    threads: int,
    out: NDArray[Any],
) -> None: ...
def label_log_odds(logits: NDArray[Any], labels: NDArray[np.int64], threads: int) -> NDArray[Any]: ...
def merge_close(
    sorted: NDArray[Any], starts: NDArray[np.int64], resolution: float
) -> tuple[NDArray[np.uint8], NDArray[Any]]: ...
def negatives_between(
    logits: NDArray[Any],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    groups: NDArray[np.int64],
    starts: NDArray[np.int64],
    bounds: NDArray[Any],
    threads: int,
) -> tuple[NDArray[np.float64], NDArray[Any]]: ...
def logistic_sums(
    logits: NDArray[Any],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    groups: NDArray[np.int64],
    coefficients: NDArray[np.float64],
    targets: NDArray[np.float64],
    two_slopes: bool,
    threads: int,
) -> NDArray[np.float64]: ...
def logistic_apply(odds: NDArray[Any], coefficients: NDArray[np.float64], threads: int, out: NDArray[Any]) -> None: ...
def logistic_lift(
    logits: NDArray[Any], coefficients: NDArray[np.float64], normalize: bool, threads: int, out: NDArray[Any]
) -> None: ...
def pool_adjacent(
    sums: NDArray[np.float64], weights: NDArray[np.float64], starts: NDArray[np.int64]
) -> NDArray[np.float64]: ...
def isotonic_apply(
    scores: NDArray[Any],
    groups: NDArray[np.int64],
    starts: NDArray[np.int64],
    knots: NDArray[Any],
    values: NDArray[np.float64],
    steps: bool,
    epsilon: float,
    threads: int,
    out: NDArray[Any],
) -> None: ...
def resample_sums(
    group: NDArray[np.int64],
    outcomes: NDArray[np.float64],
    excess: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    rows: NDArray[np.float64],
    seeds: NDArray[np.uint64],
    threads: int,
    mass: NDArray[np.float64],
    events: NDArray[np.float64],
    gaps: NDArray[np.float64],
    row_sums: NDArray[np.float64],
) -> None: ...
def linear_centres(logits: NDArray[Any], beta: float, floor: float, threads: int) -> NDArray[np.float64]: ...
def linear_features(
    logits: NDArray[Any],
    centres: NDArray[np.float64],
    beta: float,
    floor: float,
    centred: bool,
    threads: int,
    out: NDArray[Any],
) -> None: ...
def linear_sums(
    logits: NDArray[Any],
    centres: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    beta: float,
    floor: float,
    centred: bool,
    threads: int,
) -> NDArray[np.float64]: ...
def vector_sums(
    logits: NDArray[Any],
    centres: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    beta: float,
    floor: float,
    centred: bool,
    d: NDArray[np.float64],
    b: NDArray[np.float64],
    curvature: bool,
    threads: int,
) -> tuple[float, NDArray[np.float64]]: ...
def matrix_sums(
    logits: NDArray[Any],
    centres: NDArray[np.float64],
    labels: NDArray[np.int64],
    row_weights: NDArray[np.float64] | None,
    beta: float,
    floor: float,
    centred: bool,
    mean: float,
    scale: float,
    weights: NDArray[np.float64],
    threads: int,
) -> tuple[float, NDArray[np.float64]]: ...
def matrix_blocks(
    logits: NDArray[Any],
    centres: NDArray[np.float64],
    row_weights: NDArray[np.float64] | None,
    beta: float,
    floor: float,
    centred: bool,
    mean: float,
    scale: float,
    weights: NDArray[np.float64],
    threads: int,
) -> NDArray[np.float64]: ...
def matrix_moment(
    logits: NDArray[Any],
    centres: NDArray[np.float64],
    row_weights: NDArray[np.float64] | None,
    beta: float,
    floor: float,
    centred: bool,
    mean: float,
    scale: float,
    weights: NDArray[np.float64],
    shift: NDArray[np.float64],
    threads: int,
) -> NDArray[np.float64]: ...
def matrix_along(
    logits: NDArray[Any],
    centres: NDArray[np.float64],
    row_weights: NDArray[np.float64] | None,
    beta: float,
    floor: float,
    centred: bool,
    mean: float,
    scale: float,
    weights: NDArray[np.float64],
    directions: NDArray[np.float64],
    threads: int,
) -> NDArray[np.float64]: ...
def vector_apply(
    logits: NDArray[Any],
    centres: NDArray[np.float64],
    beta: float,
    floor: float,
    centred: bool,
    d: NDArray[np.float64],
    b: NDArray[np.float64],
    threads: int,
    out: NDArray[Any],
) -> None: ...
def softmax_residual(
    scores: NDArray[Any],
    logits: NDArray[Any],
    centres: NDArray[np.float64],
    labels: NDArray[np.int64] | None,
    weights: NDArray[np.float64] | None,
    beta: float,
    b: NDArray[np.float64],
    threads: int,
) -> NDArray[np.float64]: ...
def keep_shares(logits: NDArray[Any], noise: NDArray[Any], scale: float, threads: int) -> NDArray[np.float64]: ...
def keep_probabilities(
    logits: NDArray[Any], noise: int, scale: float, nodes: int, threads: int
) -> NDArray[np.float64]: ...
def add_class_kernels(
    products: NDArray[Any],
    half_norms: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    starts: NDArray[np.int64],
    first: int,
    skip: NDArray[np.int64] | None,
    scale: float,
    threads: int,
    shifts: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None: ...
def finish_class_kernels(
    sums: NDArray[np.float64],
    shifts: NDArray[np.float64],
    own: NDArray[np.float64],
    prior: NDArray[np.float64],
    scale: float,
    zero_log: float,
    clip: float,
    threads: int,
    out: NDArray[Any],
) -> None: ...
