"""Fuzzers: inputs by chance, from a seed, against what is promised. ``make fuzz SECONDS=600 SEED=1`` runs them."""
