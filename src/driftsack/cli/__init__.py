"""Layer 6: the command line. No logic: each command calls the layers below and shows what they return."""

from __future__ import annotations

from typing import Annotated

import typer

from driftsack.cli.advise import advise
from driftsack.cli.bench import bench
from driftsack.cli.league import league
from driftsack.cli.measure import measure
from driftsack.cli.report import report
from driftsack.cli.reproduce import reproduce
from driftsack.cli.run import run
from driftsack.cli.verify import verify

app = typer.Typer(
    name="driftsack",
    help="Bandits with knapsacks in a world that moves. Start with: driftsack reproduce",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
app.command()(reproduce)
app.command()(verify)
app.command()(run)
app.command()(report)
app.command()(league)
app.command()(measure)
app.command()(advise)
app.command()(bench)


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        from driftsack import __version__  # noqa: PLC0415  (the package imports before its command line)

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and leave."),
    ] = False,
) -> None:
    """Bandits with knapsacks in a world that moves. Start with: driftsack reproduce."""
