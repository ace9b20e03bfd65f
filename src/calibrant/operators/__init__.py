"""Operators on maps, each written once."""
