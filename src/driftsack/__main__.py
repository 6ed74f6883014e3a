"""``driftsack`` and ``python -m driftsack``: the command line."""

from __future__ import annotations

import sys

from driftsack.core.errors import MissingExtraError
from driftsack.core.extras import require


def main() -> None:
    """Run the command line, or name the extra that it needs."""
    try:
        require("typer", "rich")
    except MissingExtraError as error:
        sys.exit(f"driftsack: {error}")
    from driftsack.cli import app

    app()


if __name__ == "__main__":
    main()
