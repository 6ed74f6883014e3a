"""Owners that are cut off from their database in network namespaces: packets are lost, and no connection is closed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from lab.service.faults import CHAT, CLIENTS, LEASE, row, until_answered
from lab.service.processes import Process, TrialError, call, open_campaign
from lab.service.witness import Findings, Witness
from tests.support.local_postgres import LocalPostgres
from tests.support.relay import relayed

LINKS: Final = "10.199.77"  # the network of the trial
STATUS: Final = 503


class Namespace(NamedTuple):
    """A network namespace with one link to the clients and one to the database.

    Attributes:
        name: The name of the namespace.
        host: The address of a service in it.
        database: The address of the database.
    """

    name: str
    host: str
    database: str

    def cut(self) -> None:
        """Let all packets between the service and the database get lost."""
        run("ip", "link", "set", f"{self.name}d", "down")

    def heal(self) -> None:
        """Deliver packets again."""
        run("ip", "link", "set", f"{self.name}d", "up")


def run_partitions(times: int, directory: Path, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Return the row of :func:`cut_off_owner`; nothing if this process may not make network namespaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        progress("network namespaces need root and the program ip")
        return []
    return [cut_off_owner(directory, times, CLIENTS, progress)]


def run(*command: str) -> None:
    """Run a command of ``ip``."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise TrialError(f"{' '.join(command)}: {done.stderr.strip()}")


@contextmanager
def namespace(number: int) -> Iterator[Namespace]:
    """Make a network namespace, and remove it at the end of the block."""
    name = f"ds{os.getpid() % 10**6}{number}"
    run("ip", "netns", "add", name)
    try:
        for k, link in enumerate(("c", "d")):
            base = 16 * number + 4 * k
            run("ip", "link", "add", name + link, "type", "veth", "peer", "name", f"{name}{link}p")
            run("ip", "link", "set", f"{name}{link}p", "netns", name)
            run("ip", "addr", "add", f"{LINKS}.{base + 1}/30", "dev", name + link)
            run("ip", "link", "set", name + link, "up")
            run("ip", "-n", name, "addr", "add", f"{LINKS}.{base + 2}/30", "dev", f"{name}{link}p")
            run("ip", "-n", name, "link", "set", f"{name}{link}p", "up")
        run("ip", "-n", name, "link", "set", "lo", "up")
        yield Namespace(name, f"{LINKS}.{16 * number + 2}", f"{LINKS}.{16 * number + 5}")
    finally:
        run("ip", "netns", "del", name)


def cut_off_owner(directory: Path, times: int, clients: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Cut the owner off from the database until another replica takes over, and heal it; it must not write any more."""
    server = LocalPostgres(Path(tempfile.mkdtemp(dir=directory)))
    try:
        store = server.new_database()
        with namespace(0) as one, namespace(1) as two:
            places = (one, two)
            with relayed(store, one.database) as (_, first), relayed(store, two.database) as (_, second):
                services = [
                    Process(directory, address, lease=LEASE, place=(place.name, place.host))
                    for place, address in zip(places, (first, second), strict=True)
                ]
                key = services[0].key
                open_campaign(services[0].url, key)
                slowest, witnesses = 0.0, []
                for k in range(times):
                    progress(f"owner cut off from the database, {k + 1} of {times}")
                    owner, other = services[k % 2], services[1 - k % 2]
                    until_answered(owner.url, key)
                    witness = Witness(owner.url, key, "chat", clients)
                    witnesses.append(witness)
                    time.sleep(0.5)
                    places[k % 2].cut()
                    slowest = max(slowest, until_answered(other.url, key))
                    status = call(owner.url, key, "POST", CHAT + "/decisions", {}, timeout=15.0)[0]
                    if status != STATUS:
                        raise TrialError(f"an owner without a database answered {status}.")
                    places[k % 2].heal()
                    time.sleep(0.5)
                    witness.stop()
                for service in services:
                    service.stop()
            whole = Findings(0, 0, 0, 0, 0, "")
            for witness in witnesses:
                whole = whole.plus(witness.audit(store))
            return row(
                "owner cut off from PostgreSQL", times, whole, f"taken over in {slowest:.1f} s, lease {LEASE:g} s"
            )
    finally:
        server.remove()
