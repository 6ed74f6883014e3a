"""The workers of the demo: they ask, simulate the answer of a model, and tell, through the HTTP client."""

from __future__ import annotations

import random
import threading
import time
from typing import Final

from driftsack.client import Client, ServiceError
from driftsack.service.demo.week import DAYS, day_of, simulate_answer

WORKERS: Final = 6


class Week:
    """The requests of a week, sent by several workers.

    Args:
        url: The address of the service.
        key: An API key with the scope ``decide``.
        requests: Number of requests of the week.
        seconds: Duration of the simulated week; 0 for as fast as possible.
        stop: Set by the caller to stop early.
        until: Number of requests to send; None for the whole week.

    Attributes:
        answered: Number of requests that a model answered.
    """

    def __init__(
        self,
        url: str,
        key: str,
        campaign: str,
        requests: int,
        seconds: float,
        stop: threading.Event,
        until: int | None = None,
    ) -> None:
        self._service = (url, key, campaign)
        self._requests, self._seconds, self._stop = requests, seconds, stop
        self._counter, self._start = iter(range(requests if until is None else until)), 0.0
        self.answered = 0

    def send(self) -> None:
        """Send all requests, and wait until they are answered."""
        self._start = time.monotonic()
        workers = [threading.Thread(target=self._work, args=(seed,), daemon=True) for seed in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _work(self, seed: int) -> None:
        """Send requests until none are left."""
        rng, client = random.Random(seed), Client(*self._service)  # noqa: S311
        try:
            while (request := next(self._counter, None)) is not None and not self._stop.is_set():
                day = day_of(request, self._requests)
                if self._stop.wait(max(self._start + self._seconds * day / DAYS - time.monotonic(), 0.0)):
                    break
                self._serve(client, day, rng)
        except ServiceError:
            if not self._stop.is_set():  # the service failed
                raise
        finally:
            client.disconnect()

    def _serve(self, client: Client, day: float, rng: random.Random) -> None:
        """Ask for a model, simulate its answer, and tell the outcome."""
        decision = client.ask()
        if decision.skipped:
            return
        found = simulate_answer(decision.name, day, rng)
        self.answered += 1
        if not found.lost:
            client.tell(decision, found.reward, found.costs)
