"""``driftsack verify``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Group
from rich.text import Text

from driftsack.cli.console import (
    JsonOption,
    SeedOption,
    messages,
    plain_errors,
    print_json,
    progress_bar,
    results,
    single_line,
)
from driftsack.core.text import number

LEAST_POWER: Final = 0.1  # that of driftsack.verify, which is imported when it is needed


def verify(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer instances and trials: seconds instead of minutes.")
    ] = False,
    only: Annotated[str | None, typer.Option(help="Check only statements whose name contains this string.")] = None,
    seed: SeedOption = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Draw margins and fitted rates to this file (.png, .svg, .pdf).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check the theory: try every statement of the paper, and those about Adaptive, on instances that could violate it.

    Prints one row per statement: its verdict, how many cases were tried, and the worst margin. Where a statement is
    false as printed, a counterexample is shown and the corrected statement is checked. Each check is also applied to
    trivial competitors, such as a policy that never plays; if one passes, the verdict is "vacuous at this horizon".
    The power of a check is the largest factor below 1, on the bound or whatever the row names, that it notices; a
    statement that holds by a check with a power below 0.1 is "weak". The exit code is 0 only if every verdict is the
    one in docs/theory.md.

    Example: driftsack verify --quick --only proposition
    """
    from driftsack.verify import verify as check
    from driftsack.verify.statement import Effort

    begun = time.perf_counter()
    with plain_errors():
        with progress_bar() as bar:
            rows = check(Effort(quick, seed), only, single_line(bar))
        if figure is not None:
            from driftsack.plot import theory_figure

            theory_figure(rows).savefig(figure, dpi=130)
    if as_json:
        print_json({"statements": rows, "seconds": time.perf_counter() - begun})
    else:
        results.print(_table(rows))
    wrong = [row["name"] for row in rows if not row["as_documented"]]
    if wrong:
        messages.print(Text.assemble(("not as documented", "bold red"), f" {', '.join(wrong)}"))
        raise typer.Exit(code=1)
    messages.print(f"{len(rows)} statements, {time.perf_counter() - begun:.0f} s: every verdict as documented")


def _table(rows: list[dict[str, Any]]) -> Group:
    """Format the verdicts as paragraphs, since sentences do not fit into the columns of a table."""
    parts = []
    for row in rows:
        colour = "green" if row["as_documented"] else "red"
        counts = f"tried {number(row['tried'])}, worst margin {number(row['margin'], digits=2)}: {row['note']}"
        title = ((row["name"], "bold"), f" ({row['source']}): ", (row["verdict"], colour))
        weak = " (weak)" if row["power"] < LEAST_POWER else ""
        rejected = f"power {row['power']:.2g} on {row['scaled']}{weak}; rejected too: {row['competitor']}"
        parts.append(Text.assemble(*title, f"\n  {row['says']}\n  {counts}\n  {rejected}\n"))
    return Group(Text("Statements of the paper and about Adaptive.\n", style="bold"), *parts)
