"""Long forms of tests of the service, and programs that need a browser, another package or a clean environment."""

from __future__ import annotations

from typing import Annotated

import typer

from driftsack.cli.console import JsonOption, SeedOption
from lab.commands.pages import all_hold, exit_unless


def state_machine(
    steps: Annotated[int, typer.Argument(min=1, help="Minimum number of steps on each store.")] = 100_000,
) -> None:
    """Play random commands against a reference ledger, on SQLite and on PostgreSQL.

    The long form of tests/service/runtime/test_state_machine.py. A difference is printed with the commands that lead to
    it.

    Example: python -m lab state-machine 20000
    """
    from lab.service.state_machine import play_on_both_stores

    play_on_both_stores(steps)


def requests(
    cases: Annotated[int, typer.Argument(min=1, help="Number of requests, at least.")] = 10_000,
) -> None:
    """Send generated requests to every route, one by one and in sequences, and check each answer by the OpenAPI schema.

    The long form of tests/service/web/test_schema.py. The first answer that differs is printed.

    Example: python -m lab requests 1000
    """
    from lab.service.generated_requests import send_many

    send_many(cases)


def context_requests(
    cases: Annotated[int, typer.Argument(min=1, help="Number of crafted requests.")] = 100_000,
) -> None:
    """Send crafted contexts to a campaign: NaN, huge numbers, wrong types, nesting, many features, long strings.

    The long form of tests/service/domain/test_crafted_contexts.py. Fails if one is not refused by name, or changes
    anything.

    Example: python -m lab context-requests 2000
    """
    from driftsack.cli.console import columns_of, print_table
    from tests.support.crafted_contexts import attack

    found = attack(cases)
    rows = [{"fault": fault, "refused by name": count} for fault, count in sorted(found.refused.items())]
    print_table(
        rows, columns_of(rows), f"{sum(found.refused.values()):,} crafted contexts, {found.valid:,} valid ones."
    )
    for failure in found.failures[:10]:
        typer.echo(failure)
    exit_unless(not found.failures)


def orphans(
    clients: Annotated[int, typer.Option(min=8, help="Number of clients.")] = 64,
    asks: Annotated[int, typer.Argument(min=64, help="Number of requests of all clients.")] = 10_000,
) -> None:
    """Cancel and freeze clients at random, and freeze the service; no reservation may be left without an owner.

    The long form of tests/client/test_orphans.py.

    Example: python -m lab orphans 1000
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from driftsack.cli.console import columns_of, print_table
    from lab.service.orphans import run_orphans

    with TemporaryDirectory(dir=Path.cwd(), prefix="driftsack-lab-") as directory:
        found = run_orphans(clients, asks, Path(directory))
    print_table([found], columns_of([found]), "Reservations after all clients were closed.")
    exit_unless(not found["pending"] and found["reserved"] == "0" and not found["failed clients"])


def page(
    events: Annotated[int, typer.Argument(min=1, help="Number of server-sent events.")] = 100_000,
    updates: Annotated[int, typer.Option(min=1, help="How often the page must fetch its parts again.")] = 3_600,
) -> None:
    """Flood a page of the dashboard with server-sent events in Chromium; its heap must not grow.

    The default number of updates is that of an hour at one update a second. The long form of a test in
    tests/service/web/test_browser.py.

    Example: python -m lab page 10000 --updates 300
    """
    from lab.service.page import soak_page

    exit_unless(not soak_page(events, updates))


def alarm_level() -> None:
    """Choose the level of the dashboard's drift alarms by a budget for false alarms, and say what they detect.

    Takes about ten minutes. Fails if the service uses another level, or if the budget is not kept on fresh seeds.

    Example: python -m lab alarm-level
    """
    from lab.service.alarm_level import choose_and_verify

    exit_unless(choose_and_verify())


def proxy_cost(
    pairs: Annotated[int, typer.Argument(min=1, help="Number of calls of each kind.")] = 150,
) -> None:
    """Measure what driftsack proxy adds to a call.

    Its calls are interleaved with calls of the upstream itself and of the same proxy without asking. The service, the
    upstream and both proxies run in processes of their own.

    Example: python -m lab proxy-cost
    """
    from lab.service.proxy_cost import measure

    measure(pairs)


def hostile_upstreams(
    requests: Annotated[int, typer.Argument(min=1, help="Number of requests of all clients.")] = 100_000,
    clients: Annotated[int, typer.Option(min=1, help="Number of clients.")] = 64,
) -> None:
    """Send requests through the proxy to upstreams that fail in every way, and kill the proxy and the service.

    No budget may be overspent, no decision may be left open, and the books of both sides must agree. The long form of
    tests/lab/test_hostile_upstreams.py.

    Example: python -m lab hostile-upstreams 3000
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from driftsack.cli.console import columns_of, messages, print_table
    from lab.service.hostile_upstreams import run_hostile

    with TemporaryDirectory(dir=Path.cwd(), prefix="driftsack-lab-") as directory:
        row, faults = run_hostile(requests, clients, Path(directory))
    print_table([row], columns_of([row]), "The books after the trial.")
    for fault in faults:
        messages.print(fault)
    exit_unless(not faults)


def prompt_routing(
    orders: Annotated[int, typer.Argument(min=1, help="Number of orders of the prompts.")] = 20,
    clients: Annotated[int, typer.Option(min=1, help="Number of clients.")] = 4,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Route real prompts through the proxy, with the built-in features of prompts and without.

    Needs the prompts of another package: pip install paretobandit==0.1.1. Fails if the features do not pay, or a budget
    is exceeded.

    Example: python -m lab prompt-routing 3
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from driftsack.cli.console import columns_of, plain_errors, print_json, print_table, status_line
    from lab.service import prompt_routing as measured

    with (
        plain_errors(),
        TemporaryDirectory(dir=Path.cwd(), prefix="driftsack-lab-") as directory,
        status_line("starting") as show,
    ):
        table, seeds = measured.table_of_wheel(), range(seed, seed + orders)
        rows = measured.played(table, seeds, clients, Path(directory), show)
    bars = measured.prompt_bars(rows)
    if as_json:
        print_json({"rows": rows, "bars": bars})
    else:
        print_table(rows, columns_of(rows), "Reward per request in each order.")
        print_table(bars, columns_of(bars), "What must hold.")
    exit_unless(all_hold(bars))


def litellm() -> None:
    """Use the real LiteLLM: its router with the plugin, and its client with driftsack proxy.

    LiteLLM pins older packages than the development environment has, so it needs an environment of its own: make
    litellm. Lists every fault, detects a planted one, and measures what the plugin adds to a call.

    Example: make litellm
    """
    from lab.service.litellm_trial import try_litellm

    exit_unless(not try_litellm())


def newcomer() -> None:
    """Follow only the README in a clean clone and a fresh environment, until the service decides.

    Clones the last commit into an empty directory and prints how long each step took. Fails above ten minutes.

    Example: python -m lab newcomer
    """
    from lab.newcomer import follow_readme

    exit_unless(not follow_readme())
