"""Drawing measurements and curves on matplotlib Axes: yours, or those of a new figure of pyplot.

No setting is touched: colours and sizes are given to each mark.
"""

from .comparison import comparison, learning_curve
from .lab import bias_heat_map, edges_over_densities
from .monitor import monitor
from .reliability import class_grid, reliability

__all__ = [
    "bias_heat_map",
    "class_grid",
    "comparison",
    "edges_over_densities",
    "learning_curve",
    "monitor",
    "reliability",
]
