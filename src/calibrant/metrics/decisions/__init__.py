"""Decisions: what probabilities are worth to someone who acts on them, and what miscalibration costs."""
