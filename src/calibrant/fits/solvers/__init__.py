"""Solvers: each sees values, slopes and curvatures, and never rows."""
