"""How a fit is made: solvers that see sums and never rows, and the one rule by which a fit is judged."""
