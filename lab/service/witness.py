"""``Witness``: clients that record every acknowledged answer and compare it with the journal."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any, Final, NamedTuple

from driftsack.client import Client, ServiceError, ServiceUnavailableError
from driftsack.core.errors import DriftsackError
from driftsack.service.domain import journal
from driftsack.service.projections import explain
from driftsack.service.store import open_store


class Findings(NamedTuple):
    """The findings of an audit."""

    asked: int  # acknowledged decisions
    told: int  # acknowledged outcomes
    lost: int  # acknowledged decisions and outcomes that are missing or different in the journal
    twice: int  # decisions that were made or settled twice
    overspent: int  # budgets that are overspent without an overrun
    damaged: str  # why the journal cannot be verified and replayed; empty if it can

    @property
    def clean(self) -> bool:
        """Whether nothing was lost, done twice, overspent or damaged."""
        return not (self.lost or self.twice or self.overspent or self.damaged)

    def plus(self, other: Findings) -> Findings:
        """Add the findings of another audit."""
        return Findings(
            self.asked + other.asked,
            self.told + other.told,
            self.lost + other.lost,
            self.twice + other.twice,
            self.overspent + other.overspent,
            self.damaged or other.damaged,
        )


FEATURES: Final[dict[str, Any]] = {
    "numbers": ["tokens", "age"],
    "categories": {"kind": ["chat", "code"], "tier": ["free", "paid"]},
    "optional": ["age", "tier"],
}
"""The features of a campaign whose clients send contexts."""


def context_of(rng: random.Random) -> dict[str, Any]:
    """The features of a request; optional ones are often missing."""
    found: dict[str, Any] = {"tokens": rng.lognormvariate(5.0, 1.0), "kind": rng.choice(["chat", "code", "poem"])}
    found |= {"age": rng.choice([None, rng.randrange(90)])} if rng.random() < 0.7 else {}
    return found | ({"tier": rng.choice(["free", "paid", None])} if rng.random() < 0.7 else {})


class Witness:
    """Clients in threads that ask and tell, and record what was acknowledged.

    Args:
        url: The address of the service.
        key: An API key.
        campaign: The campaign.
        clients: The number of clients.
        seeing: Whether the campaign has ``FEATURES``, so that requests carry contexts.
    """

    def __init__(self, url: str, key: str, campaign: str, clients: int, seeing: bool = False) -> None:
        self._campaign, self._seeing = campaign, seeing
        self.asked: dict[int, str | None] = {}
        self.told: dict[int, str] = {}
        self.repeated = 0
        self.errors: list[str] = []
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(url, key, k)) for k in range(clients)]
        for thread in self._threads:
            thread.start()

    def _run(self, url: str, key: str, seed: int) -> None:
        """Ask and tell until the witness is stopped."""
        rng = random.Random(seed)  # noqa: S311  (costs of a trial)
        client = Client(url, key, self._campaign, patience=60.0, timeout=10.0)
        while not self._stop.is_set():
            try:
                decision = client.ask(context=context_of(rng) if self._seeing else None)
                if decision.skipped or decision.number is None:
                    self._stop.wait(0.01)
                    continue
                with self._lock:
                    self.repeated += decision.number in self.asked
                    self.asked[decision.number] = decision.name
                cost = f"0.{rng.randrange(1, 11):02}"
                client.tell(decision, 1.0, {"usd": cost})
                with self._lock:
                    self.told[decision.number] = cost
            except ServiceUnavailableError:
                continue
            except ServiceError as error:
                self.errors.append(str(error))
        client.disconnect()

    def stop(self) -> None:
        """Stop the clients."""
        self._stop.set()
        for thread in self._threads:
            thread.join(90)

    def acknowledged(self) -> tuple[dict[int, str | None], dict[int, str]]:
        """Return copies of the acknowledged decisions and outcomes up to now."""
        with self._lock:
            return {**self.asked}, {**self.told}

    def audit(self, store: str) -> Findings:
        """Compare what was acknowledged with the journal of a store that no service uses any more."""
        opened = open_store(store, read_only=True)
        made: Counter[int] = Counter()
        settled: Counter[int] = Counter()
        outcomes: dict[int, float] = {}
        for segment in opened.segments(self._campaign):
            for event in journal.decode(segment.body):
                if isinstance(event, journal.Asked):
                    made[event.number] += 1
                elif isinstance(event, journal.Told):
                    settled[event.number] += 1
                    outcomes[event.number] = event.costs[0]
        lost = sum(number not in made for number in self.asked)
        lost += sum(outcomes.get(number) != float(cost) for number, cost in self.told.items())
        twice = sum(count > 1 for count in (made + Counter()).values()) + sum(count > 1 for count in settled.values())
        overspent = sum(
            spent + reserved > granted for granted, reserved, spent, _ in opened.budgets(self._campaign).values()
        )
        damaged = "; ".join(self.errors[:3])
        try:
            found = explain.replay(opened, self._campaign)
            damaged += "" if found.same and not found.divergences else " the replay differs"
        except DriftsackError as error:
            damaged += f" {error}"
        opened.close()
        return Findings(len(self.asked), len(self.told), lost, twice + self.repeated, overspent, damaged.strip())
