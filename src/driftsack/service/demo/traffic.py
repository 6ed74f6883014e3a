"""The workers of the demonstration: they ask, let a simulated model answer, and tell, over HTTP, as any client does."""

from __future__ import annotations

import random
import threading
import time
from typing import Final

from driftsack.client import Client, ServiceError
from driftsack.service.demo.week import DAYS, answer, day_of

WORKERS: Final = 6


class Week:
    """The requests of a week, which several workers share.

    Args:
        url: Where the service is.
        key: An API key that may decide.
        campaign: The campaign.
        requests: The number of requests.
        seconds: How long the week takes; 0 for as fast as possible.
        stop: Set to give up.
        until: The request before which the week is broken off; None for its end.

    Attributes:
        answered: The number of requests that a model answered.
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
        """Send all requests, and return when they are answered."""
        self._start = time.monotonic()
        workers = [threading.Thread(target=self._work, args=(seed,), daemon=True) for seed in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _work(self, seed: int) -> None:
        """Take requests until there are no more."""
        rng, client = random.Random(seed), Client(*self._service)  # noqa: S311
        try:
            while (request := next(self._counter, None)) is not None and not self._stop.is_set():
                day = day_of(request, self._requests)
                if self._stop.wait(max(self._start + self._seconds * day / DAYS - time.monotonic(), 0.0)):
                    break
                self._serve(client, day, rng)
        except ServiceError:
            if not self._stop.is_set():  # the service is gone although nobody stopped it
                raise
        finally:
            client.disconnect()

    def _serve(self, client: Client, day: float, rng: random.Random) -> None:
        """Ask for a model, let it answer, and tell."""
        decision = client.ask()
        if decision.skipped or decision.name is None:
            return
        found = answer(decision.name, day, rng)
        self.answered += 1
        if not found.lost:
            client.tell(decision, found.reward, found.costs)
