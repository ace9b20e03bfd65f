"""Reading scores, and saving and loading calibrators: with `reports` and `cli` the only rooms that know of paths."""
