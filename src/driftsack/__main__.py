"""``python -m driftsack``: the command line."""

from driftsack.cli import app

app()
