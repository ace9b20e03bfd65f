"""Cells: scores and outcomes of one event as sorted cells, the edges that part them, and fits of them."""
