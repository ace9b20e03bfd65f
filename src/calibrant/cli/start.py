"""Where the program begins: says which extra is missing before anything else is imported."""

from __future__ import annotations

import sys

_EXTRA = {"click", "jinja2", "matplotlib", "rich"}  # what calibrant[cli] brings


def main() -> int:
    """Run the program, or name the extra that it needs; Ctrl-C ends it quietly while it is loaded, too."""
    try:
        from .main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        sys.stderr.write(
            f'error: the command line needs {error.name}, which is not installed; hint: pip install "calibrant[cli]"\n'
        )
        return 4
    return run()
