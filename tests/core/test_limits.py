"""Every number that a kernel bounds: at the bound it is taken, one step beyond it is refused."""

import numpy as np
import pytest
from tests.core.calls import KERNELS, Call, signatures

from calibrant import _core

NAN, INF = np.nan, np.inf
TAKEN = {
    "threads": [1, 1024],
    "cell_sums bits": [1, 16],
    "temperature_sums loss": [0, 1],
    "keep_probabilities noise": [0, 1],
    "keep_probabilities nodes": [2, 1 << 16],
    "keep_shares draws": [65, 70, 96],  # three tiles of 32
    "best_partition bins": [1, 12],
    "triweight h": [5e-324, 1e300],
    "add_class_kernels first": [0, 1],
}
REFUSED = {
    "threads": [0, 1025, -1],
    "cell_sums bits": [0, 17],
    "cell_sums group_count": [0, -1],
    "temperature_sums loss": [-1, 2],
    "keep_probabilities noise": [-1, 2],
    "keep_probabilities nodes": [1, (1 << 16) + 1],
    "keep_shares draws": [0, -1, 64, 97],
    "best_partition bins": [0, -1],
    "imax bins": [0, 2, 4],
    "triweight h": [0.0, -1.0, NAN, INF],
    "add_class_kernels first": [-1, 2],
}
# One entry of an array, the first or the last, set to each value: taken, and refused. Five classes are in two groups.
ENTRIES = {
    "labels": ([0, 4], [-1, 5]),
    "score_cells labels": ([0, 1], [-1, 2]),
    "fold_cells labels": ([0, 1], [-1, 2]),
    "temperature_sums places": ([0, 1], [-1, 2]),
    "resample_sums group": ([0, 6], [-1, 7]),
    "isotonic_apply groups": ([0, 1], [-1, 2]),
    "pieces_apply groups": ([0, 1], [-1, 2]),
    "negatives_between groups": ([-1, 0, 1], [-2, 2]),
    "cell_sums groups": ([-1, 0, 1], [2]),
    "bin_sums groups": ([-1, 0, 1], [2]),
    "logistic_sums groups": ([-1, 0, 1], [2]),
    "imax scores": ([], [NAN, INF]),
    "imax weights": ([], [NAN, INF]),
    "imax outcomes": ([], [NAN, INF]),
    "sweep values": ([], [NAN, INF, -INF, 2.0]),
    "sweep prefix": ([], [NAN, INF, 99.0]),
    "triweight points": ([], [NAN, 99.0]),
    "cell_sums shift": ([], [-1, 32]),
    "cell_sums first": ([], [-1]),
    "add_linear_mixture columns": ([], [0, 2, 4, 7]),
}
STARTS = {  # of the same number of values, in two groups
    "negatives_between": ([[0, 0, 7], [0, 7, 7]], [[1, 3, 7], [0, 3, 6], [0, 3, 8], [0, 8, 7], [-1, 3, 7], [0, -1, 7]]),
    "merge_close": ([[0, 0, 7], [0, 7, 7], [0, 7]], [[1, 3, 7], [0, 3, 6], [0, 8, 7], [0]]),
    "pool_adjacent": ([[0, 0, 12], [0, 12]], [[1, 3, 12], [0, 3, 11], [0, 13, 12], [0]]),
    "isotonic_apply": ([[0, 1, 9], [0, 8, 9]], [[0, 0, 9], [0, 9, 9], [0, 3, 8], [1, 3, 9], [0, 10, 9]]),
    "pieces_apply": ([[0, 2, 11], [0, 9, 11]], [[0, 1, 11], [0, 10, 11], [0, 3, 10], [1, 4, 11], [0, 12, 11]]),
    "add_class_kernels": ([[0, 0, 6], [0, 6, 6]], [[0, 6, 5], [-1, 2, 6], [0, 3, 5]]),
    "imax": ([[0, 1, 12], [0, 12]], [[0, 0, 12], [0, 12, 12], [0, 13], [-1, 12], [5, 5]]),
}


def refuses(kernel, **changed):
    call = Call()(kernel, **changed)
    try:
        getattr(_core, kernel)(**call)
    except (ValueError, TypeError):
        return True
    return False


def named(table, kernel):
    """Return the rows of a table that are of a kernel, or of an argument of all kernels."""
    found = {}
    for name, values in table.items():
        of, _, argument = name.rpartition(" ")
        if of in ("", kernel) and argument in signatures()[kernel]:
            found[argument] = values
    return found


def cells_for(argument, value):
    """What must follow where the number of bits changes: as many coarse cells, and no finer ones."""
    if argument != "bits" or not 0 <= value <= 17:
        return {}
    return {"first": None, "shift": None, "out": np.zeros((2 << value, 2))}


@pytest.mark.parametrize("kernel", KERNELS)
def test_numbers_are_taken_up_to_their_bounds(kernel):
    for argument, values in named(TAKEN, kernel).items():
        assert not any(refuses(kernel, **{argument: v, **cells_for(argument, v)}) for v in values), argument
    for argument, values in named(REFUSED, kernel).items():
        for v in values:
            assert refuses(kernel, **{argument: v, **cells_for(argument, v)}), f"{argument} {v}"


@pytest.mark.parametrize("kernel", KERNELS)
def test_entries_of_arrays_are_taken_up_to_their_bounds(kernel):
    for argument, (taken, refused) in named(ENTRIES, kernel).items():
        for place in (0, -1):
            for value in (*taken, *refused):
                given = np.array(Call()(kernel)[argument])
                given.flat[place] = value
                beyond = argument in ("values", "points", "prefix") and value in (2.0, 99.0) and place == -1
                if beyond:
                    continue  # the last of values that rise may be larger
                assert refuses(kernel, **{argument: given}) == (value in refused), f"{argument} {value} at {place}"


@pytest.mark.parametrize("kernel", STARTS)
def test_starts_are_taken_up_to_their_bounds(kernel):
    taken, refused = STARTS[kernel]
    for starts in (*taken, *refused):
        more = {}
        if kernel == "add_class_kernels":
            more = {"first": 1, "sums": np.zeros((12, len(starts) - 1))}
        groups = np.zeros(5, dtype=np.int64)
        more |= {"groups": groups} if "groups" in signatures()[kernel] else {}
        assert refuses(kernel, starts=np.array(starts), **more) == (starts in refused), f"{starts}"


def test_bits_of_cells_leave_room_for_groups():
    """Groups times coarse cells are below 2^31, and a table of cells has exactly as many rows as a score can reach."""
    assert refuses("cell_sums", bits=16, group_count=1 << 15, first=None, shift=None, out=np.zeros((2, 2)))
    call = Call()("cell_sums")
    for shift in (23, 25):  # of the last coarse cell: finer or coarser than what follows is long
        given = call["shift"].copy()
        given[-1] = shift
        assert refuses("cell_sums", shift=given)
    for rows in (len(call["out"]) - 1, len(call["out"]) + 1):
        assert refuses("cell_sums", out=np.zeros((rows, 2)))
    assert refuses("cell_sums", first=None)
    assert refuses("cell_sums", shift=None)
    assert refuses("cell_sums", out=np.zeros((len(call["out"]), 3)))


def test_tables_without_entries_are_refused():
    assert refuses("curve_sums", knots=np.zeros(1), values=np.zeros((2, 1)))
    assert refuses("curve_sums", stations=np.zeros(0), values=np.zeros((0, 9)))
    assert refuses("class_bins", edges=np.zeros(1))
    assert refuses("pair_bins", edges=np.zeros(1))
    assert refuses("temperature_sums", betas=np.zeros(0), places=None)
    assert refuses("bin_sums", edges=np.zeros((0, 3)))
    assert refuses("imax", uniforms=np.zeros((3, 0)))
    assert refuses("pack_noise", noise=np.zeros((5, 0)))
    assert refuses("resample_sums", mass=np.zeros((3, 0)))
    for name in ("outcomes", "excess"):  # one of them alone
        assert refuses("resample_sums", **{name: np.zeros(2)})
    assert refuses("finite_logs", logits=None)
    assert refuses(
        "spread_confidence", **{name: np.zeros((3, 0)) for name in ("alphas", "betas")}, filled=np.zeros((3, 0), bool)
    )
    assert refuses("bin_lift", edges=np.zeros((2, 7)), table=np.zeros((2, 8)))
    assert not refuses("bin_lift", edges=np.zeros((1, 7)), table=np.zeros((1, 8)))
    assert refuses("logistic_apply", coefficients=np.zeros((2, 3)))
    assert not refuses("logistic_apply", coefficients=np.zeros((1, 3)))


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if "threads" in signatures()[kernel]])
def test_every_number_of_threads_gives_the_same(kernel):
    """To the last bit, of several blocks of rows."""
    found = []
    for threads in (1, 2, 3, 7):
        call = Call(260, 6, 5)(kernel, threads=threads)
        answer = getattr(_core, kernel)(**call)
        arrays = answer if isinstance(answer, tuple) else (answer,)
        found.append([np.asarray(part).tobytes() for part in (*arrays, *call.values()) if isinstance(part, np.ndarray)])
    assert all(one == found[0] for one in found[1:])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_without_columns_cost_nothing_however_many(kind):
    """Such an array needs no memory for its rows."""
    empty = np.empty((2**55, 0), kind)
    _core.panel_products(empty, np.empty(0, kind), 1, empty)
