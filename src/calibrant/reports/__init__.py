"""The one-file HTML report: what was measured, what helps, and how sure that is."""

from ..errors import import_extra

import_extra("jinja2", "report", "the report")  # before a part of it is missing without a word
from .write import Context, report  # noqa: E402

__all__ = ["Context", "report"]
