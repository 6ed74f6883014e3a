"""``python -m lab mutants``, ``powers`` and ``companion``."""

from __future__ import annotations

from typing import Final

from lab.commands.pages import exit_unless

LEAST_CAUGHT: Final = 0.95


def mutants() -> None:
    """Plant faults in measures, benchmarks, radii, windows and bounds, and see whether `driftsack verify` notices.

    Fails if less than 95% of the faults are noticed by a row of a quick run. A short form is in
    tests/lab/test_mutants.py.

    Example: python -m lab mutants
    """
    from lab.mutants import MUTANTS, catch_all

    survivors = catch_all(lambda name, row: print(f"{name}: {'SURVIVES' if row is None else f'caught by {row}'}"))
    caught = len(MUTANTS) - len(survivors)
    print(f"{caught} of {len(MUTANTS)} caught; survivors: {', '.join(survivors) or 'none'}")
    exit_unless(caught >= LEAST_CAUGHT * len(MUTANTS))


def powers() -> None:
    """Run the quick checks of `driftsack verify`, and write the power of each into the table of docs/theory.md.

    Example: python -m lab powers
    """
    from driftsack.cli.console import progress_bar, single_line
    from lab.powers import PAGE, write_powers

    with progress_bar() as bar:
        written = write_powers(single_line(bar))
    print(f"{len(written)} powers written to {PAGE}")


def companion() -> None:
    """Measure every number of the LaTeX companion, and write them to docs/companion/numbers.tex and rows.tex.

    Example: python -m lab companion
    """
    from driftsack.cli.console import progress_bar, single_line
    from lab.companion import DIRECTORY, write_companion

    with progress_bar() as bar:
        count = write_companion(single_line(bar))
    print(f"{count} numbers written to {DIRECTORY}")
