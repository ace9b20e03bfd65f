"""Estimators: what turns scores and outcomes, or the cells they fall into, into a number or a curve."""
