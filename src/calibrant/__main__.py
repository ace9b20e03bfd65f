"""``python -m calibrant``: the command line, where the script is not on the path."""

import sys

from .cli.start import main

if __name__ == "__main__":
    sys.exit(main())
