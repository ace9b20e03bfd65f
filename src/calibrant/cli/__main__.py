"""``python -m calibrant.cli`` is ``calibrant``."""

import sys

from .start import main

sys.exit(main())
