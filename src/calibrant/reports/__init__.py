"""The one-file HTML report: what was measured, what helps, and how sure that is."""

from .write import Context, report

__all__ = ["Context", "report"]
