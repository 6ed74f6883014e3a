"""Fault injection: processes are killed and frozen, databases restart, disks fill up, files are corrupted.

Each trial returns rows of a table. In all of them nothing acknowledged may be lost, settled twice or overspent, and
the journal must verify and replay bit for bit.
"""

from __future__ import annotations

import random
import resource
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from driftsack.client import Client
from lab.service.processes import Process, TrialError, call, free_port, open_campaign
from lab.service.witness import Findings, Witness
from tests.support.local_postgres import LocalPostgres

Progress = Callable[[str], None]
CHAT = "/v1/campaigns/chat"
WAIT_LIMIT = 60.0
CLIENTS = 24


def row(what: str, times: int, findings: Findings, extra: str = "") -> dict[str, Any]:
    """Return a row of the table of faults."""
    return {
        "fault": what,
        "times": times,
        "acknowledged": findings.asked + findings.told,
        "lost": findings.lost,
        "twice": findings.twice,
        "overspent": findings.overspent,
        "journal": findings.damaged or "verified, replayed",
        "more": extra,
        "clean": "yes" if findings.clean else "no",
    }


def under_load(directory: Path, store: str, clients: int) -> tuple[Process, Witness]:
    """Start a service, open a campaign, and let clients ask and tell."""
    service = Process(directory, store)
    open_campaign(service.url, service.key)
    return service, Witness(service.url, service.key, "chat", clients)


def kill_under_load(directory: Path, times: int, clients: int, budget: str, progress: Progress) -> dict[str, Any]:
    """Kill the service while clients ask and tell, and start it again."""
    store, port = str(directory / f"kill-{free_port()}.db"), free_port()
    service = Process(directory, store, port, snapshot_every=500)
    open_campaign(service.url, service.key, budget={"usd": budget})
    witness = Witness(service.url, service.key, "chat", clients)
    rng, key = random.Random(7), service.key  # noqa: S311
    for k in range(times):
        progress(f"kill -9, {k + 1} of {times}")
        time.sleep(0.3 + 0.7 * rng.random())
        service.kill()
        service = Process(directory, store, port, snapshot_every=500)
    time.sleep(1.0)
    witness.stop()
    _, found = call(service.url, key, "GET", CHAT + "/budgets")
    service.stop()
    extra = f"{found['budgets'][0]['remaining']} of {budget} left"
    return row(f"kill -9, {clients} clients, budget {budget}", times, witness.audit(store), extra)


def race_for_the_last(directory: Path, times: int, clients: int, progress: Progress) -> dict[str, Any]:
    """Let many clients ask for one remaining reservation at once; exactly one may get it."""
    store = str(directory / f"race-{free_port()}.db")
    service = Process(directory, store)
    open_campaign(service.url, service.key, budget={"usd": "0.1"})
    wrong = 0
    hands = [Client(service.url, service.key, "chat") for _ in range(clients)]
    with ThreadPoolExecutor(clients) as pool:
        for k in range(times):
            if k % 10 == 0:
                progress(f"race, {k + 1} of {times}")
            won = [d for d in pool.map(lambda client: client.ask(), hands) if not d.skipped]
            while not won:  # the policy may skip
                won = [d for d in [hands[0].ask()] if not d.skipped]
            wrong += len(won) != 1
            for decision in won:
                hands[0].tell(decision, 1.0, {"usd": "0.1"})
            call(service.url, service.key, "POST", CHAT + "/grants", {"amounts": {"usd": "0.1"}})
    for client in hands:
        client.close()
    service.stop()
    witness = Witness("http://localhost", "", "chat", 0)
    findings = witness.audit(store)._replace(asked=times * clients, twice=wrong)
    return row(f"{clients} clients race for one reservation", times, findings)


def restart_database(directory: Path, times: int, clients: int, progress: Progress) -> dict[str, Any]:
    """Restart PostgreSQL under load, every second time abruptly, and measure how long the service is unavailable."""
    server = LocalPostgres(Path(tempfile.mkdtemp(dir=directory)))
    try:
        store = server.new_database()
        service, witness = under_load(directory, store, clients)
        slowest = 0.0
        for k in range(times):
            progress(f"PostgreSQL restarts, {k + 1} of {times}")
            time.sleep(0.3)
            server.restart(immediate=k % 2 == 0)
            slowest = max(slowest, until_answered(service.url, service.key))
        witness.stop()
        service.stop()
        return row(f"PostgreSQL restarts, {clients} clients", times, witness.audit(store), f"back in {slowest:.1f} s")
    finally:
        server.remove()


def until_answered(url: str, key: str) -> float:
    """Wait until the service decides again, and return the seconds that this took."""
    begin = time.monotonic()
    while time.monotonic() - begin < WAIT_LIMIT:
        if call(url, key, "POST", CHAT + "/decisions", {}, timeout=2.0)[0] == 200:
            return time.monotonic() - begin
        time.sleep(0.05)
    raise TrialError(f"the service did not answer within {WAIT_LIMIT:g} seconds.")


def freeze_owner(directory: Path, times: int, clients: int, lease: float, progress: Progress) -> dict[str, Any]:
    """Freeze the owner with SIGSTOP until another replica takes over, then wake it up; it must not write any more."""
    server = LocalPostgres(Path(tempfile.mkdtemp(dir=directory)))
    try:
        store = server.new_database()
        services = [Process(directory, store, lease=lease), Process(directory, store, lease=lease)]
        key = services[0].key
        open_campaign(services[0].url, key)
        slowest, witnesses = 0.0, []
        for k in range(times):
            progress(f"SIGSTOP of the owner, {k + 1} of {times}")
            # Freeze the owner under load, and wake it up once the other replica answers.
            owner, other = services[k % 2], services[1 - k % 2]
            witness = Witness(owner.url, key, "chat", clients)
            witnesses.append(witness)
            time.sleep(0.5)
            owner.signal(signal.SIGSTOP)
            slowest = max(slowest, until_answered(other.url, key))
            owner.signal(signal.SIGCONT)
            time.sleep(0.5)
            witness.stop()
        for service in services:
            service.stop()
        audits = [witness.audit(store) for witness in witnesses]
        whole = audits[0]
        for other_audit in audits[1:]:
            whole = Findings(*(_sum(a, b) for a, b in zip(whole, other_audit, strict=True)))
        return row("owner frozen and woken up", times, whole, f"taken over in {slowest:.1f} s, lease {lease:g} s")
    finally:
        server.remove()


def _sum(one: Any, other: Any) -> Any:
    return one + other if isinstance(one, int) else (one or other)


def fill_disk(directory: Path, times: int, clients: int, progress: Progress) -> dict[str, Any]:
    """Let every write of the service fail, as on a full disk, and then succeed again."""
    store = str(directory / f"full-{free_port()}.db")
    service, witness = under_load(directory, store, clients)
    slowest = 0.0
    for k in range(times):
        progress(f"disk full, {k + 1} of {times}")
        time.sleep(0.5)
        service.limit_files(1)
        time.sleep(1.0)
        status = call(service.url, service.key, "POST", CHAT + "/decisions", {}, timeout=2.0)[0]
        if status == 200:
            raise TrialError("a decision was acknowledged although nothing could be written.")
        service.limit_files(resource.RLIM_INFINITY)
        slowest = max(slowest, until_answered(service.url, service.key))
    witness.stop()
    service.stop()
    return row(f"disk full and back, {clients} clients", times, witness.audit(store), f"back in {slowest:.1f} s")


def damage_files(directory: Path, clients: int, progress: Progress) -> list[dict[str, Any]]:
    """Corrupt the newest snapshot, which must do no harm, and truncate the journal, which must be detected."""
    progress("corrupt snapshot, cut journal")
    store, port = str(directory / f"damage-{free_port()}.db"), free_port()
    service = Process(directory, store, port, snapshot_every=100)
    key = service.key
    open_campaign(service.url, key)
    witness = Witness(service.url, key, "chat", clients)
    time.sleep(1.0)
    witness.stop()
    service.stop()
    change(store, "UPDATE snapshot SET body = zeroblob(5000) WHERE seq = (SELECT max(seq) FROM snapshot)")
    service = Process(directory, store, port)
    answered = call(service.url, key, "POST", CHAT + "/decisions", {})[0]
    service.stop()
    rows = [row("newest snapshot corrupt", 1, witness.audit(store), f"answered {answered}")]
    change(
        store,
        "DELETE FROM snapshot",
        "DELETE FROM segment WHERE campaign = 'chat' AND first = (SELECT max(first) FROM segment)",
    )
    service = Process(directory, store, port)
    status, problem = call(service.url, key, "POST", CHAT + "/decisions", {})
    service.stop()
    noticed = problem.get("type") == "urn:driftsack:damaged"
    findings = Findings(0, 0, 0, 0, 0, "" if noticed else f"the cut was not noticed: {status}")
    return [*rows, {**row("journal cut", 1, findings), "journal": "refused" if noticed else findings.damaged}]


def change(store: str, *statements: str) -> None:
    """Change a SQLite store while no service uses it."""
    with closing(sqlite3.connect(store)) as file, file:
        for statement in statements:
            file.execute(statement)


def run_faults(kills: int, directory: Path, progress: Progress, postgres: bool = True) -> list[dict[str, Any]]:
    """Run every trial.

    Args:
        kills: How often the service is killed under load; the other faults are repeated in proportion.
        directory: Where stores and logs are written.
        progress: Called with the current trial.
        postgres: Whether to run the trials that need a PostgreSQL server.
    """
    some, few = -(-kills // 3), -(-2 * kills // 15)
    rows = [
        kill_under_load(directory, kills, CLIENTS, "100000", progress),
        kill_under_load(directory, some, CLIENTS, "20", progress),
        race_for_the_last(directory, 20 * some, 64, progress),
        fill_disk(directory, few, CLIENTS, progress),
        *damage_files(directory, CLIENTS, progress),
    ]
    if postgres:
        rows.append(restart_database(directory, few, CLIENTS, progress))
        rows.append(freeze_owner(directory, few, CLIENTS, 10.0, progress))
    return rows
