"""``driftsack`` and ``python -m driftsack``: the command line."""

from __future__ import annotations

import sys

from driftsack.core.errors import MissingExtraError
from driftsack.core.extras import EXTRAS, missing, require


def main() -> None:
    """Run the command line, or name the extra that a command needs."""
    try:
        require("typer", "rich")
        from driftsack.cli import app

        app()
    except MissingExtraError as error:
        sys.exit(f"driftsack: {error}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        sys.exit(f"driftsack: {missing(package)}")


if __name__ == "__main__":
    main()
