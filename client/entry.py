"""Where `turnwright` starts: Ctrl-C ends it quietly also while the rest is still imported."""

from __future__ import annotations

import sys


def main() -> None:
    """Import the command line and run it."""
    try:
        from client import cli

        cli.main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
