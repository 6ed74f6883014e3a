"""The reference of the command line, generated from the commands themselves; the site includes it as cli.md."""

from __future__ import annotations

import re
from typing import Any

import typer

from driftsack.cli import app

OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")
EXAMPLE = "Example: "


def cell(text: str) -> str:
    """Format a string as the cell of a table.

    >>> cell("a | b")
    'a &#124; b'
    """
    return " ".join(text.split()).replace("|", "&#124;").replace("<", "&lt;")


def default(parameter: Any) -> str:
    """Format the default of an option."""
    if parameter.required:
        return "required"
    if parameter.default is None or parameter.default is False or parameter.default in ((), []):
        return ""
    return f"`{parameter.default}`"


def row(parameter: Any) -> str:
    """Format a parameter as a row of a table."""
    names = " ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    elif parameter.metavar:
        names += f" {cell(parameter.metavar)}"
    repeat = " May be repeated." if parameter.multiple and "repeat" not in (parameter.help or "").lower() else ""
    return f"| {names} | {paragraph(cell(parameter.help or ''))}{repeat} | {default(parameter)} |"


def paragraph(text: str) -> str:
    """Format a paragraph of a help text: an example becomes a block, and options become code.

    >>> paragraph("Not with --oco.")
    'Not with `--oco`.'
    """
    if text.startswith(EXAMPLE):
        return "```sh\n" + text.removeprefix(EXAMPLE).strip().replace("\n", " \\\n  ") + "\n```"
    return OPTION.sub(r"`\1`", text)


def section(name: str, command: Any) -> list[str]:
    """The section of a command, or the sections of a group of commands."""
    if hasattr(command, "commands"):
        inner = [section(f"{name} {word}", part) for word, part in command.commands.items()]
        return [text for part in inner for text in part]
    text = "\n\n".join(paragraph(part) for part in (command.help or "").split("\n\n"))
    rows = [row(parameter) for parameter in command.params if not parameter.hidden and parameter.name != "help"]
    return [f"## {name}\n", text, "\n| option | meaning | default |\n| --- | --- | --- |", *rows, ""]


def reference() -> str:
    """The page.

    >>> page = reference()
    >>> "## driftsack advise" in page, "`--drop-duplicates`" in page
    (True, True)
    """
    group: Any = typer.main.get_command(app)
    head = (
        "# Command line\n\n`driftsack --help` lists the commands, and `driftsack COMMAND --help` prints what is"
        " said here. With `--json`, a command prints one JSON document to standard output, progress goes to standard"
        " error.\n"
    )
    return "\n".join([head, *section("driftsack", group)])
