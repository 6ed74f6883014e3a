"""``driftsack verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from driftsack.cli.run import JsonOption
from driftsack.cli.show import messages, plain_errors, print_json, progress_bar, results

if TYPE_CHECKING:
    from driftsack.verify.statement import Effort


def verify(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer instances and trials: seconds instead of minutes.")
    ] = False,
    only: Annotated[str | None, typer.Option(help="Only statements whose name contains this.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same rows.")] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Draw margins and fitted rates into this file (.png, .svg, .pdf).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Test the theory itself: every statement of the paper, tried on worlds that could break it.

    A row a statement: its verdict, how much was tried, and the worst margin found. What is wrong as printed is shown
    to be, and the corrected statement is tried instead. The exit code is 0 only if every verdict is the one that
    docs/theory.md states.

    Example: driftsack verify --quick --only proposition
    """
    from driftsack.verify.statement import Effort  # noqa: PLC0415  (SciPy loads only where it is used)

    with plain_errors():
        rows = _with_bar(Effort(quick, seed), only)
        if figure is not None:
            from driftsack.plot import theory_figure  # noqa: PLC0415

            theory_figure(rows).savefig(figure, dpi=130)
    if as_json:
        print_json({"statements": rows, "seconds": sum(row["seconds"] for row in rows)})
    else:
        results.print(_table(rows))
    wrong = [row["name"] for row in rows if not row["as_documented"]]
    if wrong:
        messages.print(f"[bold red]not as documented[/] {', '.join(wrong)}", highlight=False)
        raise typer.Exit(code=1)
    messages.print(f"{len(rows)} statements, {sum(row['seconds'] for row in rows):.0f} s: every verdict as documented")


def _with_bar(effort: Effort, only: str | None) -> list[dict[str, Any]]:
    """Run the checks with a bar on stderr."""
    from driftsack.verify import verify as check  # noqa: PLC0415

    with progress_bar() as bar:
        task = bar.add_task("preparing kernels", total=None)

        def show(name: str, place: int, total: int) -> None:
            bar.update(task, completed=place, total=total, description=name)

        return check(effort, only, show)


def _table(rows: list[dict[str, Any]]) -> Table:
    """Verdicts for people; what the margin is measured in stands below its number."""
    table = Table(title="Statements of the paper", title_justify="left", show_lines=True)
    for name in ("statement", "says", "verdict", "tried", "worst margin, and of what"):
        table.add_column(name, justify="right" if name == "tried" else "left", overflow="fold")
    for row in rows:
        colour = "green" if row["as_documented"] else "red"
        table.add_row(
            f"{row['name']}\n[dim]{row['source']}[/]",
            row["says"],
            f"[{colour}]{row['verdict']}[/]",
            f"{row['tried']:,}",
            f"{row['margin']:.2g}\n[dim]{row['note']}[/]",
        )
    return table
