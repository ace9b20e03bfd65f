"""Inference: intervals, tests, and what they mean in words."""
