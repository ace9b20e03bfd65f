"""Maps that act on the whole logit vector."""
