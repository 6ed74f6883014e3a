"""The command line: each command parses its options, calls one function of the library and prints the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

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
PANELS: Final[dict[str, dict[str, Callable[..., Any] | typer.Typer]]] = {
    "Start here": {"advise": advise, "serve": serve, "demo": demo, "proxy": proxy},
    "Manage a service": {
        "campaign": campaign,
        "keys": keys,
        "prices": prices,
        "mcp": mcp,
        "why": why,
        "replay": replay,
        "backup": backup,
        "archive": archive,
        "clock": clock,
        "compile": compile_kernels,
    },
    "Research": {
        "reproduce": reproduce,
        "verify": verify,
        "run": run,
        "report": report,
        "league": league,
        "measure": measure,
    },
}
"""The commands by name, under the headings of the help page."""

for heading, commands in PANELS.items():
    for name, command in commands.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=heading)
        else:
            app.command(name, rich_help_panel=heading)(command)


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
    """Spend limited budgets well while rewards and costs change.

    With a log of past requests, begin with "driftsack advise"; "driftsack demo" shows the service at work.
    """
