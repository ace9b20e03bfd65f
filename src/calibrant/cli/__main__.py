"""``python -m calibrant.cli`` is ``calibrant``."""

import sys

from .main import main

sys.exit(main())
