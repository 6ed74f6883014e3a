"""Operations of the soak that ask, one by one and in batches, with open arms, caps and times."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.decision import SKIP, Decision
from lab.soak.model import Finding, Held, expect
from lab.soak.player import Player


def next_time(player: Player) -> tuple[float | datetime | None, float]:
    """Draw the time of the next request, as an argument of ``ask`` and in seconds."""
    if player.problem.period is None and not player.chance(0.1):
        return None, math.nan
    player.now += float(player.rng.exponential(100.0 if player.chance(0.9) else 20_000.0))
    late = 10.0 if player.chance(0.1) and player.start is not None and player.now > player.start + 10.0 else 0.0
    if player.chance(0.5):
        player.now = float(math.ceil(player.now))
        return datetime.fromtimestamp(player.now - late, UTC), player.now - late
    return player.now - late, player.now - late


def random_request(player: Player) -> tuple[dict[str, Any], Bools, Floats | None]:
    """Draw arguments of ``ask``; also return the arms that they allow and the caps (d,), NaN where there is none."""
    arms, d = player.model.arms, player.problem.resources
    offered = np.array([arm.offered for arm in arms])
    given: dict[str, Any] = {}
    if player.chance(0.15):
        mask = player.rng.random(len(arms)) < 0.6
        if player.model.fallback is not None:
            mask[player.model.fallback] = True
        numbers = np.flatnonzero(mask).tolist()
        forms = [mask, numbers, [arms[i].name for i in numbers]]
        given["open"] = forms[int(player.rng.integers(3))] if numbers else mask
        offered = offered & mask
    caps = None
    needs_caps = player.model.safe and not player.model.bounded
    if needs_caps or player.chance(0.15):
        caps = player.typical() * player.rng.choice([0.5, 1.0, 1.5, 0.1], size=d)
        if not needs_caps and player.chance(0.3):
            caps[player.rng.integers(d)] = math.nan
        names = zip(player.problem.resource_names, caps.tolist(), strict=True)
        given["caps"] = {name: cap for name, cap in names if not math.isnan(cap)}
    return given, offered, caps


def random_context(player: Player) -> dict[str, Any]:
    """Draw the features of a request, if requests have features."""
    if not player.problem.features:
        return {}
    return {"context": player.features.draw(player.rng)}


def check_contexts(player: Player, given: list[Any], found: Floats | None) -> None:
    """Raise a finding unless the decisions have the encoded features of their requests."""
    missing = player.features.missing
    for k, context in enumerate(given):
        expected = player.features.encoded(context)
        if found is None or not np.array_equal(found[k], expected):
            raise Finding(f"the context of a decision must be {expected}, got {found if found is None else found[k]}")
    player.tally.events["missing values"] += player.features.missing - missing


def ask(player: Player) -> None:
    """Ask for one decision."""
    given, offered, caps = random_request(player)
    at, seconds = next_time(player)
    kind = "ask"
    if given or at is not None:
        kind = "ask with " + ("open" if "open" in given else "caps" if "caps" in given else "at")
    player.count(kind)
    if at is not None:
        given["at"] = at
    given |= random_context(player)
    if refuses(player, lambda: player.learner.ask(**given)):
        return
    made = player.learner.ask(**given)
    if player.problem.features:
        check_contexts(player, [given["context"]], None if made.context is None else made.context[None])
    note_start(player, seconds)
    table, known = player.model.reservations(caps)
    arms, number = np.array([made.arm]), np.array([made.round])
    held = Held(made, arms, number, table[arms], known, player.model.accounts.number, seconds)
    enter(player, held, offered, table)
    expect("the number of the round", made.round, player.model.begun)
    kept = player.model.accounts.amounts(held.reserved[0].tolist())
    shown = [amount if sure or made.skipped else math.nan for amount, sure in zip(kept, known, strict=True)]
    if not np.array_equal(made.reserved, shown, equal_nan=True):
        raise Finding(f"decision.reserved must be {shown}, got {made.reserved}")


def ask_many(player: Player) -> None:
    """Ask for many decisions at once."""
    given, offered, caps = random_request(player)
    at, seconds = next_time(player)
    given |= {"at": at} if at is not None else {}
    size = int(player.rng.integers(1, player.largest_batch + 1))
    if player.problem.features:
        given["contexts"] = player.features.draw_many(player.rng, size)
    if refuses(player, lambda: player.learner.ask_many(size, **given)):
        player.count("ask_many")
        return
    made = player.learner.ask_many(size, **given)
    if player.problem.features:
        check_contexts(player, list(given["contexts"])[: len(made)], made.contexts)
    note_start(player, seconds)
    player.count("ask_many", len(made))
    left = size if player.model.last is None else min(size, player.model.last - player.model.begun)
    expect("the length of a batch", len(made), left)
    table, known = player.model.reservations(caps)
    held = Held(made, made.arms, made.rounds, table[made.arms], known, player.model.accounts.number, seconds)
    enter(player, held, offered, table)


def refuses(player: Player, call: Callable[[], Any]) -> bool:
    """Return whether no round can begin, and check that the learner refuses it."""
    error = player.model.refusal()
    if error is None:
        return False
    player.refused(call, error)
    player.tally.events["refused because of the horizon or a budget"] += 1
    player.over = player.chance(0.3)
    return True


def note_start(player: Player, seconds: float) -> None:
    """Note when the first request started the period."""
    if player.problem.period is not None and player.start is None:
        player.start = seconds


def enter(player: Player, held: Held, offered: Bools, table: Ints) -> None:
    """Record decisions in the model, and count the events that they show."""
    player.model.begin(held)
    made = held.arms != SKIP
    player.tally.events["decisions for an arm"] += int(made.sum())
    player.tally.events["skipped rounds"] += int((~made).sum())
    mix = held.decisions.mix if isinstance(held.decisions, Decision) else held.decisions.mixes[-1]
    player.model.check_choice(held, offered, table, player.learner.rounds_left, mix)
    if player.model.safe and made.any():
        room = player.model.accounts.room()
        player.tally.events["rounds admitted at exactly the limit"] += min(room) == 0
        cheapest = [player.model.fits(row, 0, room) for row in table[:-1]]
        player.tally.events["exhausted budgets"] += not any(cheapest)
