"""Fault injection: processes are killed and frozen, databases restart, disks fill up, files are corrupted.

Each trial returns rows of a table. In all of them nothing acknowledged may be lost, settled twice or overspent, and
the journal must verify and replay bit for bit.
"""

from __future__ import annotations

import random
import resource
import shutil
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
from driftsack.service.runtime.clock_check import accept_clock
from driftsack.service.store import open_store
from driftsack.service.web.api.keyring import new_key
from lab.service.backups import checked_backup
from lab.service.processes import START_LIMIT, Process, TrialError, call, free_port, open_campaign
from lab.service.witness import FEATURES, Findings, Witness
from tests.support.local_postgres import LocalPostgres
from tests.support.paths import DATA
from tests.support.relay import relayed

Progress = Callable[[str], None]
CHAT = "/v1/campaigns/chat"
WAIT_LIMIT = 60.0
LOADED = 5.0  # seconds; a budget may be exhausted, so that no more answers come
CLIENTS = 24
LEASE = 5.0  # seconds, where the network before the database fails
MOST_REFUSED = 12.0  # seconds until a request is refused when the database does not answer
MOST_STOPPED = 15.0  # seconds
OK = 200


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


def kill_under_load(
    directory: Path, times: int, clients: int, budget: str, progress: Progress, seeing: bool = False
) -> dict[str, Any]:
    """Kill the service while clients ask and tell, and start it again; ``seeing`` if requests have features."""
    store, port = str(directory / f"kill-{free_port()}.db"), free_port()
    service = Process(directory, store, port, snapshot_every=500)
    settings: dict[str, Any] = {"features": FEATURES, "policy": None} if seeing else {}
    open_campaign(service.url, service.key, budget={"usd": budget}, **settings)
    witness = Witness(service.url, service.key, "chat", clients, seeing)
    rng, key = random.Random(7), service.key  # noqa: S311
    for k in range(times):
        progress(f"kill -9, {k + 1} of {times}")
        until_under_load(witness)
        time.sleep(0.3 + 0.7 * rng.random())
        service.kill()
        service = Process(directory, store, port, snapshot_every=500)
    time.sleep(1.0)
    witness.stop()
    _, found = call(service.url, key, "GET", CHAT + "/budgets")
    service.stop()
    extra = f"{found['budgets'][0]['remaining']} of {budget} left"
    what = f"kill -9, {clients} clients, budget {budget}{', features' if seeing else ''}"
    return row(what, times, witness.audit(store), extra)


def until_under_load(witness: Witness) -> None:
    """Wait until answers have been acknowledged again, for which a busy machine needs longer."""
    before, end = len(witness.asked), time.monotonic() + LOADED
    while len(witness.asked) == before and time.monotonic() < end:
        time.sleep(0.01)


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
        # Sum the findings of all rounds.
        whole = Findings(0, 0, 0, 0, 0, "")
        for witness in witnesses:
            whole = whole.plus(witness.audit(store))
        return row("owner frozen and woken up", times, whole, f"taken over in {slowest:.1f} s, lease {lease:g} s")
    finally:
        server.remove()


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


def backups_under_load(directory: Path, times: int, clients: int, progress: Progress) -> dict[str, Any]:
    """Back up the store under load, compare each copy with what was acknowledged before it, and serve the last one."""
    store = str(directory / f"backup-{free_port()}.db")
    service = Process(directory, store)
    key = service.key
    open_campaign(service.url, key)
    witness, whole = Witness(service.url, key, "chat", clients), Findings(0, 0, 0, 0, 0, "")
    slowest = 0.0
    for k in range(times):
        progress(f"backups under load, {k + 1} of {times}")
        copy = directory / f"copy-{free_port()}.db"
        found, findings = checked_backup(store, copy, witness)
        slowest, whole = max(slowest, found.seconds), whole.plus(findings)
    witness.stop()
    service.stop()
    restored = Process(directory, str(copy))
    slowest = max(slowest, until_answered(restored.url, key))
    restored.stop()
    return row(f"backups, {clients} clients", times, whole.plus(witness.audit(store)), f"slowest {slowest:.1f} s")


def swallow_bytes(directory: Path, times: int, clients: int, progress: Progress) -> dict[str, Any]:
    """Let the network before PostgreSQL hold or swallow bytes without closing a connection, and then relay again."""
    server = LocalPostgres(Path(tempfile.mkdtemp(dir=directory)))
    try:
        store = server.new_database()
        with relayed(store) as (relay, address):
            service = Process(directory, address, lease=LEASE)
            key = service.key
            open_campaign(service.url, key)
            witness = Witness(service.url, key, "chat", clients)
            # Cut the connection, and check that the service refuses requests until it is back.
            slowest = refused = 0.0
            for k in range(times):
                progress(f"PostgreSQL swallows bytes, {k + 1} of {times}")
                time.sleep(0.5)
                relay.swallow() if k % 2 else relay.hold()
                begin = time.monotonic()
                status = call(service.url, key, "POST", CHAT + "/decisions", {}, timeout=WAIT_LIMIT)[0]
                refused = max(refused, time.monotonic() - begin)
                time.sleep(max(0.0, begin + LEASE - time.monotonic()))
                ready = call(service.url, key, "GET", "/readyz")[0]
                relay.go_on()
                if (status, ready) != (503, 503):
                    raise TrialError(f"without a database, a request got {status} and /readyz {ready}.")
                slowest = max(slowest, until_answered(service.url, key))
            # Stop the service without its database.
            witness.stop()
            relay.swallow()
            begin = time.monotonic()
            service.stop()
            stopped = time.monotonic() - begin
            relay.go_on()
        if refused > MOST_REFUSED or stopped > MOST_STOPPED:
            raise TrialError(f"a request waited {refused:.1f} s, and a stop {stopped:.1f} s.")
        extra = f"503 in {refused:.1f} s, back in {slowest:.1f} s, stopped in {stopped:.1f} s"
        return row(f"PostgreSQL swallows bytes, {clients} clients", times, witness.audit(store), extra)
    finally:
        server.remove()


def once_loaded(url: str, key: str, name: str) -> tuple[int, Any]:
    """Ask until the campaign is loaded, and return the status and the answer."""
    begin = time.monotonic()
    status, answer = call(url, key, "POST", f"/v1/campaigns/{name}/decisions", {}, timeout=START_LIMIT)
    unavailable = "urn:driftsack:unavailable"
    while answer.get("type", unavailable) == unavailable and status != OK and time.monotonic() - begin < START_LIMIT:
        time.sleep(0.1)
        status, answer = call(url, key, "POST", f"/v1/campaigns/{name}/decisions", {}, timeout=START_LIMIT)
    return status, answer


def upgrade_fixtures(directory: Path, progress: Progress) -> dict[str, Any]:
    """Serve the journals of every earlier release, continue them, and replay them."""
    whole, files = Findings(0, 0, 0, 0, 0, ""), sorted(DATA.glob("service-*.db"))
    for file in files:
        progress(f"upgrade from {file.name}")
        store = str(directory / file.name)
        shutil.copy(file, store)
        with closing(open_store(store)) as opened:
            accept_clock(opened)
            names, (key, key_row) = opened.names(), new_key(("admin",))
            opened.add_key(key_row)
        service = Process(directory, store)
        answers = {name: once_loaded(service.url, key, name)[0] for name in names}
        damaged = call(service.url, key, "GET", "/readyz")[1]["damaged"]
        service.stop()
        if damaged or not set(answers.values()) <= {200, 409}:  # a closed campaign decides nothing
            raise TrialError(f"{file.name} was not read: its campaigns answered {answers}.")
        for name in names:
            whole = whole.plus(Witness("http://localhost", "", name, 0).audit(store))
    return row("upgrades, every campaign of every fixture", len(files), whole)


def damage_campaigns(directory: Path, times: int, clients: int, progress: Progress) -> dict[str, Any]:
    """Change a byte of the settings of one campaign; it is named, and the other serves."""
    store, port = str(directory / f"damaged-{free_port()}.db"), free_port()
    service = Process(directory, store, port)
    key = service.key
    for name in ("chat", "bad"):
        open_campaign(service.url, key, name)
    service.stop()
    rng, whole = random.Random(7), Findings(0, 0, 0, 0, 0, "")  # noqa: S311
    with closing(sqlite3.connect(store)) as file:
        (config,) = file.execute("SELECT config FROM campaign WHERE name = 'bad'").fetchone()
    for k in range(times):
        progress(f"damaged campaigns, {k + 1} of {times}")
        place = rng.randrange(len(config))
        flipped = config[:place] + bytes([config[place] ^ (1 << rng.randrange(8))]) + config[place + 1 :]
        with closing(sqlite3.connect(store)) as file, file:
            file.execute("UPDATE campaign SET config = ? WHERE name = 'bad'", (flipped,))
        service = Process(directory, store, port)
        witness = Witness(service.url, key, "chat", clients)
        problem = once_loaded(service.url, key, "bad")[1]
        named = call(service.url, key, "GET", "/readyz")[1]["damaged"]
        time.sleep(0.5)
        witness.stop()
        service.stop()
        if problem.get("type") != "urn:driftsack:damaged" or named != ["bad"]:
            raise TrialError(f"byte {place} of the settings was changed, and the campaign answered {problem}.")
        whole = whole.plus(witness.audit(store))
    return row(f"a damaged campaign beside another, {clients} clients", times, whole)


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
        kill_under_load(directory, some, CLIENTS, "200", progress, seeing=True),
        race_for_the_last(directory, 20 * some, 64, progress),
        fill_disk(directory, few, CLIENTS, progress),
        *damage_files(directory, CLIENTS, progress),
        backups_under_load(directory, -(-kills // 15), CLIENTS, progress),
        upgrade_fixtures(directory, progress),
        damage_campaigns(directory, few, 4, progress),
    ]
    if postgres:
        rows.append(restart_database(directory, few, CLIENTS, progress))
        rows.append(freeze_owner(directory, few, CLIENTS, 10.0, progress))
        rows.append(swallow_bytes(directory, few, CLIENTS, progress))
    return rows
