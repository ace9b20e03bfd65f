"""Room: what is told, what is refused, and what is counted."""

import warnings

import pytest

from calibrant.errors import CalibrationWarning, InvalidInput
from calibrant.passes.room import Room

MB = 1_000_000


def told(room, need):
    """Return what is said of so many bytes more: nothing, a word, or a refusal."""
    with warnings.catch_warnings(record=True) as words:
        warnings.simplefilter("always")
        try:
            found = room.taking(need, "rows")
        except InvalidInput as refusal:
            return str(refusal)
    assert found.taken == room.taken + int(need)
    assert found.allowed == room.allowed
    assert all(word.category is CalibrationWarning for word in words)
    return "told" if words else "nothing"


@pytest.mark.parametrize(
    ("allowed", "taken", "need", "said"),
    [
        (10, 0, 64, "nothing"),  # as much as imports vary by
        (10, 0, 65, "told"),
        (10, 200, 56, "told"),
        (10, 200, 57, "memory=257MB or more"),  # more than 256 MB that are not there
        (100, 60, 40, "nothing"),
        (100, 60, 41, "told"),
        (400, 0, 400, "nothing"),
        (400, 300, 200, "told"),  # a quarter more than allowed
        (400, 300, 201, "memory=501MB or more"),
    ],
)
def test_too_little_room_is_told_and_much_too_little_refused(allowed, taken, need, said):
    found = told(Room(allowed * MB, taken * MB), need * MB)
    assert found == said if said in ("told", "nothing") else said in found


def test_what_needs_far_more_is_refused_beforehand():
    room = Room(400 * MB, 300 * MB)
    room.refuse_much(200 * MB, "a metric")
    with pytest.raises(InvalidInput, match=r"with a metric this takes about 501MB.*memory=400MB"):
        room.refuse_much(200 * MB + 1, "a metric")
    assert room.left_by(7.9) == Room(400 * MB, 7)
