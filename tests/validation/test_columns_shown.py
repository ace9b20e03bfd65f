"""A message shows six names of columns, and says where there are more."""

import pytest

from calibrant.errors import CalibrantError
from calibrant.validation import column_order


@pytest.mark.parametrize(
    ("count", "shown"), [(5, "a, b, c, d, e"), (6, "a, b, c, d, e, f"), (7, "a, b, c, d, e, f, …")]
)
def test_six_names_are_shown(count, shown):
    known, others = tuple("abcdefgh"[:count]), tuple("qrstuvwx"[:count])
    with pytest.raises(CalibrantError) as refused:
        column_order(others, known, None)
    assert f"allowed: {shown}, in any order" in str(refused.value)
