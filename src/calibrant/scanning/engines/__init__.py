"""Clusters as sources of batches: one file an engine."""
