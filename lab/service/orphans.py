"""Clients that are cancelled or frozen at random, on a service that is frozen too: no reservation may be left over.

The clients run in processes of their own, which the trial stops and wakes up (SIGSTOP, SIGCONT). In each process
several clients ask, cancel half of their calls before the answer arrives, and tell half of the decisions. At the end
every client is closed, and the campaign must have no pending decision and nothing reserved.
"""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from driftsack.client import AsyncClient, ServiceError
from lab.service.processes import Process, call, open_campaign

PROCESSES = 8
LONGEST_FREEZE = 2.0  # seconds
CALLS_AT_ONCE = 4  # of a client
CHAT = "/v1/campaigns/chat"


async def ask_once(client: AsyncClient, rng: random.Random) -> None:
    """Ask, and tell, cancel or forget the decision."""
    try:
        decision = await client.ask()
        if decision.skipped:
            return
        fate = rng.random()
        if fate < 0.5:
            await client.tell(decision, 1.0, {"usd": "0.01"})
        elif fate < 0.8:
            await client.cancel(decision)
    except ServiceError:
        pass


async def play(url: str, key: str, asks: int, seed: int, offline: str) -> None:
    """Ask ``asks`` times with one client, and cancel half of the calls."""
    rng = random.Random(seed)  # noqa: S311  (a trial)
    settings: dict[str, Any] = {"offline": offline, "patience": 30.0, "timeout": 1.0}
    async with AsyncClient(url, key, "chat", **settings) as client:
        for _ in range(asks // CALLS_AT_ONCE):
            calls = [asyncio.ensure_future(ask_once(client, rng)) for _ in range(CALLS_AT_ONCE)]
            await asyncio.sleep(0.02 * rng.random())
            for each in calls:
                if rng.random() < 0.5:
                    each.cancel()
            await asyncio.gather(*calls, return_exceptions=True)


async def play_all(url: str, key: str, clients: int, asks: int, seed: int) -> None:
    """Run the clients of one process; every second one has a stock."""
    names = ("closed", "stock")
    await asyncio.gather(*(play(url, key, asks, 1000 * seed + k, names[k % 2]) for k in range(clients)))


def freeze_at_random(service: Process, players: list[subprocess.Popen[bytes]], stop: threading.Event) -> None:
    """Freeze the service or one of the processes with clients, again and again."""
    rng = random.Random(5)  # noqa: S311
    while not stop.wait(0.3 + rng.random()):
        frozen: Any = service if rng.random() < 0.4 else rng.choice(players)
        send = frozen.signal if isinstance(frozen, Process) else frozen.send_signal
        send(signal.SIGSTOP)
        time.sleep(LONGEST_FREEZE * rng.random())
        send(signal.SIGCONT)


def run_orphans(clients: int, asks: int, directory: Path) -> dict[str, Any]:
    """Return a row with the reservations that are left over after all clients were closed.

    Args:
        asks: The number of requests of all clients.
        directory: Where the store is written.
    """
    service = Process(directory, str(directory / "orphans.db"))
    open_campaign(service.url, service.key)
    each = [str(clients // PROCESSES), str(asks // clients)]
    command = [sys.executable, "-m", "lab.service.orphans", service.url, service.key, *each]
    players = [subprocess.Popen([*command, str(seed)]) for seed in range(PROCESSES)]
    stop = threading.Event()
    freezer = threading.Thread(target=freeze_at_random, args=(service, players, stop))
    begin = time.monotonic()
    freezer.start()
    for player in players:
        player.wait()
    stop.set()
    freezer.join()
    _, view = call(service.url, service.key, "GET", CHAT)
    _, found = call(service.url, service.key, "GET", CHAT + "/budgets")
    service.stop()
    return {
        "clients": clients,
        "decisions": view["decisions"],
        "expired": view["expired"],
        "pending": view["pending"],
        "reserved": found["budgets"][0]["reserved"],
        "failed clients": sum(player.returncode != 0 for player in players),
        "seconds": f"{time.monotonic() - begin:.0f}",
    }


if __name__ == "__main__":
    asyncio.run(play_all(sys.argv[1], sys.argv[2], *(int(number) for number in sys.argv[3:])))
