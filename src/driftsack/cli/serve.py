"""``driftsack serve``, ``why``, ``replay``, ``backup``, ``archive`` and ``compile``: the service and its journals."""

from __future__ import annotations

import os
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from driftsack.cli.console import (
    JsonOption,
    check_file,
    messages,
    note,
    plain_errors,
    print_json,
    print_table,
    results,
    text_column,
)
from driftsack.cli.extras import service_extra
from driftsack.cli.serve_settings import merged
from driftsack.core.errors import SettingError

if TYPE_CHECKING:
    from driftsack.service.projections.explain import ArmWhy

STORE: Final = "driftsack.db"
StoreOption = Annotated[
    str | None,
    typer.Option(
        help="A file, or postgresql://USER@HOST/DATABASE. Default: DRIFTSACK_STORE, the configuration, or driftsack.db."
    ),
]


def serve(
    store: StoreOption = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port; 0 for any free one. Default: 8787.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with these settings in its table serve.")] = None,
    url: Annotated[
        str | None, typer.Option(help="URL at which other replicas reach this one. Default: its host and port.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(min=0, help="Maximum requests per second of each key; 0 for no limit.")
    ] = None,
    work: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Seconds of work per second that each key may cause by explanations, exports and exchanges while "
            "other keys are active; 0 for no limit. Default: 0.1.",
        ),
    ] = None,
    proxies: Annotated[
        str | None, typer.Option(help="Comma-separated proxies whose X-Forwarded-* headers are trusted.")
    ] = None,
    webhooks: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated addresses that get alerts about budgets and limits, signed with "
            "DRIFTSACK_WEBHOOK_SECRET."
        ),
    ] = None,
) -> None:
    """Serve decisions over HTTP: durable, shared by all workers, with budgets that are never overspent.

    By default everything is kept in one SQLite file, driftsack.db. The first administrator's key is printed once,
    when the store is empty. With a PostgreSQL address several replicas share the work and take over from each
    other. Settings come from options, then DRIFTSACK_STORE, DRIFTSACK_PORT, ..., then the TOML file.

    Example: driftsack serve
    Example: driftsack serve --store postgresql://driftsack@db/driftsack --host 0.0.0.0
    """
    with plain_errors(), service_extra():
        from driftsack.service.web.server import Settings
        from driftsack.service.web.server import serve as run

        given = {"store": store, "host": host, "port": port, "url": url, "rate": rate, "work": work, "proxies": proxies}
        given["webhooks"] = webhooks
        settings = Settings(**merged(given, config, Settings._fields))
        run(settings, show_key, lambda address: messages.print(f"listening on {address}, store {settings.store}"))


def show_key(key: str) -> None:
    """Print the first key, once."""
    typer.echo(key)  # unwrapped
    note("this is the first administrator's key. It is shown once and not kept; store it in a safe place.")


def store_address(given: str | None) -> str:
    """Return the address of the store that a command reads."""
    address = given or os.environ.get("DRIFTSACK_STORE") or STORE
    if not address.startswith("postgres") and not Path(address).is_file():
        raise SettingError(f"the store {address} does not exist; name it with --store.")
    return address


def why(
    campaign: Annotated[str, typer.Argument(help="The campaign.")],
    decision: Annotated[int, typer.Argument(min=1, help="The number of the decision.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show why a decision was made: open arms, probabilities, prices and estimates, recomputed from the journal.

    A service may be using the store at the same time.

    Example: driftsack why chat 1234
    """
    with plain_errors(), service_extra():
        import msgspec

        from driftsack.service.projections.explain import why as explain
        from driftsack.service.store import open_store

        with closing(open_store(store_address(store), read_only=True)) as opened:
            found = explain(opened, campaign, decision)
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    estimated = any(arm.reward is not None for arm in found.arms)
    rows = [arm_row(arm, list(found.remaining) if estimated else [], found.planned_with) for arm in found.arms]
    drawn = found.arm or "to skip"
    print_table(rows, [text_column(name) for name in rows[0]], f"Decision {decision} of {campaign}: {drawn}.")
    budgets = [
        {"budget": name, "remaining": amount, "price": f"{found.prices[name]:.6g}"}
        for name, amount in found.remaining.items()
    ]
    print_table(budgets, [text_column(name) for name in budgets[0]], "Budgets before it.")
    for words in found.words:
        results.print(f"- {words}", markup=False)
    if found.context is not None:
        results.print(f"The context was {msgspec.json.encode(found.context).decode()}.", markup=False)
    same = "is the recorded one" if found.same else "DIFFERS from the recorded one"
    results.print(f"The recomputed decision {same}. The state of the policy is in --json.")
    if not found.same:
        raise typer.Exit(1)


def arm_row(arm: ArmWhy, resources: list[str], planned_with: str | None) -> dict[str, str]:
    """Format an arm as a row of a table: its estimates, with bounds or draws in parentheses if there are any."""
    row = {
        "arm": arm.arm,
        "open": f"no: {arm.closed}" if arm.closed else "yes",
        "probability": f"{arm.probability:.6g}",
    }
    values = {"reward": (arm.reward, arm.planned_reward)} if resources else {}
    values |= {name: ((arm.costs or {}).get(name), (arm.planned_costs or {}).get(name)) for name in resources}
    for name, (mean, planned) in values.items():
        if planned_with is None:
            row[name] = shown(mean)
        else:
            row[f"{name} ({planned_with})"] = f"{shown(mean)} ({shown(planned)})"
    return row


def shown(value: float | None) -> str:
    """Format a number; a dash if there is none."""
    return "-" if value is None else f"{value:.4g}"


def replay(
    campaign: Annotated[str, typer.Argument(help="The campaign.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild a campaign from its first event, and compare it bit for bit with its snapshot, hash chain and budgets.

    Example: driftsack replay chat
    """
    with plain_errors(), service_extra():
        import msgspec

        from driftsack.service.projections.explain import replay as rebuild
        from driftsack.service.store import open_store

        with closing(open_store(store_address(store), read_only=True)) as opened:
            found = rebuild(opened, campaign)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        results.print(
            f"{found.events:,} events, {found.decisions:,} decisions, {found.divergences:,} differ from the recorded "
            "ones; the journal is complete, the budgets match it, and the state is "
            f"{'the same' if found.same else 'DIFFERENT'}."
        )
    if not found.same or found.divergences:
        raise typer.Exit(1)


def backup(
    target: Annotated[Path, typer.Argument(help="The file to write.")],
    store: StoreOption = None,
) -> None:
    """Copy the store to a file while the service runs (SQLite). Restore it by serving the copy.

    For PostgreSQL use pg_dump --format=custom, and pg_restore.

    Example: driftsack backup /backups/driftsack-monday.db
    """
    with plain_errors(), service_extra():
        from driftsack.service.store import open_store

        if target.exists():
            raise SettingError(f"{target} exists; name another file.")
        check_file(target, "the backup")
        with closing(open_store(store_address(store), read_only=True)) as opened:
            opened.backup(target)
    results.print(f"wrote {target}")


def archive(
    campaign: Annotated[str, typer.Argument(help="The campaign.")],
    target: Annotated[Path, typer.Argument(help="The file to write.")],
    before: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="Archive the events before this day (UTC). Default: all."),
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Delete the archived events from the store.")] = False,
    store: StoreOption = None,
) -> None:
    """Copy the journal of a campaign to a file, verify the copy, and optionally delete the archived events.

    The service may run meanwhile. The archive is a store with this campaign: replay, why and export read it. The
    hash at its end is the one with which the rest of the journal continues.

    Example: driftsack archive chat chat-2026.db --before 2027-01-01 --prune
    """
    with plain_errors(), service_extra():
        from driftsack.service.runtime import archives
        from driftsack.service.store import open_store
        from driftsack.service.store.interface import AuditRow

        if target.exists():
            raise SettingError(f"{target} exists; name another file.")
        check_file(target, "the archive")
        end = None if before is None else int(1000 * before.replace(tzinfo=UTC).timestamp())
        with closing(open_store(store_address(store), read_only=not prune, shared=prune)) as opened:
            found = archives.archive(opened, campaign, target, end)
            if prune:
                detail = f"{found.events} events to {target.name}"
                entry = AuditRow(int(1000 * time.time()), "shell", f"archive {campaign}", campaign, detail)
                archives.prune(opened, campaign, found, entry)
    deleted = "; they were deleted from the store" if prune else ""
    results.print(f"wrote {found.events:,} events, up to event {found.base.seq:,}, to {target}{deleted}")


def compile_kernels(
    policy: Annotated[
        list[str] | None, typer.Argument(help="Names of policies. Default: Adaptive; with --all, every policy.")
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also compile simulations, and batches and logs for recommended policies."),
    ] = False,
) -> None:
    """Compile the kernels of policies into the cache, so that the service is ready in a few seconds.

    Machine code does not depend on the settings of a policy, so they are not given here.

    Example: driftsack compile Adaptive SlidingWindowUCB
    Example: driftsack compile --all
    """
    from driftsack.core.checks import one_of
    from driftsack.simulation.precompile import compile_decisions, compile_in_processes, variants
    from driftsack.simulation.simulate import cores

    os.environ["DRIFTSACK_COMPILE"] = "first"
    with plain_errors():
        known = tuple(variants())
        chosen = policy or (known if everything else ["Adaptive"])
        for name in chosen:
            one_of(name, "policy", known)
        with messages.status("compiling") as status:
            if everything:
                compiled = compile_in_processes(chosen, cores())
            else:
                compiled = ((name, compile_decisions(name)) for name in chosen)
            for name, seconds in compiled:
                status.update(f"compiled {name}")
                results.print(f"{name}: {seconds:.1f} seconds")
