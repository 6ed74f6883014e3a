"""The command line: each command parses its options, calls one function of the library and prints the result."""

from __future__ import annotations

from typing import Annotated

import typer

from driftsack.cli.advise import advise
from driftsack.cli.campaign import campaign
from driftsack.cli.clock import clock
from driftsack.cli.console import CommandLine
from driftsack.cli.demo import demo
from driftsack.cli.keys import keys
from driftsack.cli.league import league
from driftsack.cli.mcp import mcp
from driftsack.cli.measure import measure
from driftsack.cli.prices import prices
from driftsack.cli.proxy import proxy
from driftsack.cli.report import report
from driftsack.cli.reproduce import reproduce
from driftsack.cli.run import run
from driftsack.cli.serve import archive, backup, compile_kernels, replay, serve, why
from driftsack.cli.verify import verify

app = CommandLine(
    name="driftsack",
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
app.command()(serve)
app.command()(demo)
app.command()(proxy)
app.command()(prices)
app.command()(mcp)
app.command()(why)
app.command()(replay)
app.command()(backup)
app.command()(archive)
app.command("compile")(compile_kernels)
app.add_typer(campaign, name="campaign")
app.add_typer(clock, name="clock")
app.add_typer(keys, name="keys")


def print_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        from driftsack import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Budget-constrained bandits for non-stationary environments. Start with: driftsack reproduce."""
