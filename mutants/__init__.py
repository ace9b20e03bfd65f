"""Small changes to the code, one at a time: each must make a test fail. ``make mutants`` runs them."""
