"""Proper scores, their decompositions, and what else is a mean over rows."""
