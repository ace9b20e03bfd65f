"""Where rows come from: one file an engine."""
