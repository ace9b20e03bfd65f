"""Every array of every kernel, longer and shorter along each axis: refused, unless nothing depends on it."""

import numpy as np
import pytest
from tests.core.calls import KERNELS, Call

from calibrant import _core

# Axes that no other argument has: more rows, more classes, more bins are another question, not a wrong one.
FREE = {
    ("bin_sums", "edges", 1),
    ("class_bins", "edges", 0),
    ("imax", "uniforms", 1),
    ("keep_probabilities", "logits", 0),
    ("keep_probabilities", "logits", 1),
    ("keep_shares", "logits", 0),
    ("largest_surprise", "logits", 1),
    ("linear_centres", "logits", 0),
    ("linear_centres", "logits", 1),
    ("linear_sums", "logits", 1),
    ("lowest", "values", 0),
    ("lowest", "values", 1),
    ("matrix_along", "directions", 1),
    ("pack_noise", "noise", 0),
    ("pack_noise", "noise", 1),
    ("pair_bins", "edges", 0),
    ("panel_products", "out", 1),
    ("row_tops", "values", 0),
    ("row_tops", "values", 1),
    ("scan", "values", 0),
    ("scan", "values", 1),
    ("top_log_odds", "logits", 0),
    ("top_log_odds", "logits", 1),
    ("triweight", "places", 0),
    ("triweight", "weights", 0),
}
# Classes beyond the labels', groups that no class belongs to, and starts of a group without members.
MORE = {
    ("bin_sums", "edges", 0),
    ("merge_close", "starts", 0),
    ("negatives_between", "starts", 0),
    ("pool_adjacent", "starts", 0),
    ("temperature_sums", "betas", 0),
    *((name, "logits", 1) for name in ("curve_sums", "ensemble_sums", "label_log_odds", "temperature_rows")),
    *((name, "values", 1) for name in ("label_hits", "row_keys")),
    ("temperature_sums", "logits", 1),
}
FEWER = {("imax", "starts", 0)}  # no group at all


def longer(array, axis):
    return np.ascontiguousarray(np.concatenate([array, np.take(array, [-1], axis=axis)], axis=axis))


def shorter(array, axis):
    return np.ascontiguousarray(np.delete(array, -1, axis=axis))


def refuses(kernel, called):
    try:
        getattr(_core, kernel)(**called)
    except (ValueError, TypeError):
        return True
    return False


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
def test_arrays_that_do_not_fit_one_another_are_refused(kernel, kind):
    getattr(_core, kernel)(**Call(kind=kind)(kernel))
    for name, array in Call(kind=kind)(kernel).items():
        for axis in range(np.ndim(array)):
            for changed, allowed in ((longer, FREE | MORE), (shorter, FREE | FEWER)):
                call = Call(kind=kind)(kernel, **{name: changed(array, axis)})
                if (kernel, name, axis) in allowed:
                    getattr(_core, kernel)(**call)
                    continue
                assert refuses(kernel, call), f"{name} is {changed.__name__} along axis {axis} and was taken"


# A row that skips nothing; any number is a seed, a key, a count, a mark, and has bits.
ANY = {
    ("add_class_kernels", "skip"),
    ("resample_sums", "seeds"),
    *(("score_cells", name) for name in ("cell_keys", "counts", "there")),
    *(("split_glances", name) for name in ("counts", "there")),
    *(("fold_cells", name) for name in ("cell_keys", "held", "out")),
}
NEGATIVE = {("bin_sums", "groups"), ("cell_sums", "groups"), ("logistic_sums", "groups")}  # a class of no group
LIKEWISE = {("negatives_between", "groups", -1)}
LARGER = {("add_class_kernels", "starts"): range(7, 2**63), ("cell_sums", "shift"): range(25, 26)}
LARGER[("fold_cells", "shift")] = range(17, 32)


def wrong_places(array):
    """Yield places and numbers that are no index of anything."""
    far = (2**62, 2**63 - 1, -(2**63)) if array.dtype == np.int64 else (2**31 - 1, -(2**31))
    for place in sorted({0, len(array) // 2, len(array) - 1}):
        for number in (-2, -1, int(array.max()) + 1, *far):
            yield place, number


@pytest.mark.parametrize("kernel", KERNELS)
def test_indices_that_lie_outside_are_refused(kernel):
    for name, array in Call()(kernel).items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu" or (kernel, name) in ANY:
            continue
        for place, number in wrong_places(array):
            called = Call()(kernel)
            called[name] = array.copy()
            called[name][place] = number
            fine = (kernel, name) in NEGATIVE if number < 0 else number in LARGER.get((kernel, name), ())
            rises = name != "starts" or place == len(array) - 1
            if (fine and rises) or (kernel, name, number) in LIKEWISE:
                continue
            assert refuses(kernel, called), f"{name}[{place}] = {number} was taken"


# The ends of what a number may be: kernel, name, the least, the greatest.
LIMITS = [
    *((name, "threads", 1, 1024) for name in ("log_odds", "scan", "temperature_sums")),
    ("keep_probabilities", "noise", 0, 1),
    ("keep_probabilities", "nodes", 2, 2**16),
    ("temperature_sums", "loss", 0, 1),
    ("add_class_kernels", "first", 0, 1),
    ("imax", "bins", 3, 3),
    ("keep_shares", "draws", 65, 96),
    ("cell_sums", "group_count", 2, 2),
]


@pytest.mark.parametrize(("kernel", "name", "least", "most"), LIMITS)
def test_numbers_are_taken_to_their_limits_and_refused_beyond(kernel, name, least, most):
    for number in (least, most):
        getattr(_core, kernel)(**Call()(kernel, **{name: number}))
    for number in (least - 1, most + 1, -(2**31), 2**31 - 1):
        assert refuses(kernel, Call()(kernel, **{name: number})), number


@pytest.mark.parametrize(("bits", "good"), [(0, False), (1, True), (16, True), (17, False)])
def test_coarse_cells_have_one_to_sixteen_bits(bits, good):
    given = {"groups": np.zeros(5, np.int64), "group_count": 1, "first": None, "shift": None}
    called = Call()("cell_sums", **given, bits=bits, out=np.zeros((1 << bits, 2)))
    if good:
        _core.cell_sums(**called)
        assert called["out"][:, 0].sum() == 5 * called["weights"].sum()
        return
    with pytest.raises(ValueError, match="too many coarse cells"):
        _core.cell_sums(**called)


SHIFTS = [(-1, 1 << 20, False), (0, 1 << 16, True), (31, 1, True), (32, 1, False)]


@pytest.mark.parametrize(("shift", "cells", "good"), SHIFTS)
def test_cells_are_split_into_all_their_keys_or_not_at_all(shift, cells, good):
    """Every coarse cell shares the same fine ones: the lower half of a key tells them apart, or nothing does."""
    z, y, w = Call(n=60).logits, Call(n=60).labels, None
    first, shifts = np.zeros(1 << 16, np.int32), np.full(1 << 16, shift, np.int32)
    called = (z, y, w, np.zeros(5, np.int64), 1, 16, first, shifts, 1, np.zeros((cells, 2)))
    if not good:
        with pytest.raises(ValueError, match="outside"):
            _core.cell_sums(*called)
        return
    odds = np.empty_like(z)
    _core.log_odds(z, 1, odds)
    bits = odds.astype(np.float32).view(np.int32).astype(np.int64)
    key = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits) + (1 << 31)
    wanted = np.bincount(((key & 0xFFFF) >> shift).ravel(), minlength=cells)
    _core.cell_sums(*called)
    np.testing.assert_array_equal(called[-1][:, 0], wanted)
