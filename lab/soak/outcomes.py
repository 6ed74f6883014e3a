"""Operations of the soak that settle decisions: tell (late, twice, in batches), cancel, forfeit and expire."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any, Final

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.decision import SKIP, Decision, Decisions
from driftsack.core.errors import (
    AlreadyToldError,
    SettingError,
)
from lab.soak.model import Held, expect, total
from lab.soak.player import Player

MOST_FORFEITED: Final = 9_000  # fewer than a learner remembers
REMEMBERED: Final = 512  # settled decisions that a learner can compare with a repeated call


def random_costs(player: Player, held: Held) -> tuple[Ints, Floats]:
    """Draw costs (n, d), in grid units and in the problem's units; often they equal the reservations."""
    d = player.problem.resources
    base = np.where(held.known, held.reserved, player.model.accounts.units(player.typical().tolist()))
    mode = int(player.rng.choice(5, p=[0.3, 0.4, 0.05, 0.15, 0.1]))
    units = base.copy()
    if mode in (1, 4):
        units = player.rng.integers(0, base + 1)
    elif mode == 2:
        units = np.zeros_like(base)
    elif mode == 3:
        units = base // 2
    if mode == 4:
        over = player.rng.random(units.shape) < min(1.0, 3.0 / len(units))
        units = np.where(over, base + player.rng.integers(1, 2 * base + 2), units)
    units[held.arms == SKIP] = 0
    places = player.model.accounts.places
    scale = [(10.0 ** max(k, 0), 10.0 ** max(-k, 0)) for k in places]
    columns = [units[:, j] / fine * coarse for j, (fine, coarse) in zip(range(d), scale, strict=True)]
    return units, np.column_stack(columns)


def tell(player: Player) -> None:
    """Tell one outcome, often late, possibly after a forfeit."""
    held = player.take(single=True)
    if held is None:
        tell_many(player)
        return
    kind = "tell after forfeit" if held.forfeited else "late tell" if held.rounds[0] < player.model.begun else "tell"
    settle_one(player, held, kind, cancelled=False)


def cancel(player: Player) -> None:
    """Cancel one decision, with or without costs."""
    held = player.take(single=True)
    if held is not None:
        settle_one(player, held, "cancel", cancelled=True)


def settle_one(player: Player, held: Held, kind: str, cancelled: bool) -> None:
    """Settle a single decision."""
    units, amounts = random_costs(player, held)
    costs = amounts[0].tolist()
    if player.chance(0.3):  # off the grid
        costs = [cost * player.rng.random() for cost in costs]
        units = np.array([player.model.accounts.units(costs, up=True)])
    reward = float(player.rng.uniform(-0.05, 1.05)) * player.problem.reward_max
    decision = held.decisions
    assert isinstance(decision, Decision)
    if cancelled and player.chance(0.5):
        units, costs = np.zeros_like(units), [0.0] * len(costs)
        player.learner.cancel(decision)
    elif cancelled:
        player.learner.cancel(decision, costs)
        kind = "cancel with costs"
    elif player.chance(0.3):  # in two parts
        parts: list[dict[str, Any]] = [{"reward": reward}, {"costs": in_some_form(player, costs)}]
        first, second = parts if player.chance(0.5) else reversed(parts)
        player.learner.tell(decision, **first)
        player.unchanged(lambda: player.learner.tell(decision, **first))
        player.learner.tell(decision, **second)
        kind = "tell in parts"
    else:
        player.learner.tell(decision, reward, in_some_form(player, costs))
    player.count(kind)
    player.model.settle(held, units)
    player.told = [*player.told[-20:], (player.model.settled, cancelled, decision, 0.0 if cancelled else reward, costs)]


def in_some_form(player: Player, costs: list[float]) -> Any:
    """Pass costs as a list, an array, a mapping, a tuple or a number."""
    forms = [costs, np.array(costs), dict(zip(player.problem.resource_names, costs, strict=True)), tuple(costs)]
    if len(costs) == 1:
        forms.append(costs[0])
    return forms[int(player.rng.integers(len(forms)))]


def repeat(player: Player) -> None:
    """Settle a decision again: the same content changes nothing, other content is refused."""
    if not player.told:
        return
    player.count("repeated tell")
    when, cancelled, decision, reward, costs = player.told[int(player.rng.integers(len(player.told)))]
    forgotten = player.model.settled - when >= REMEMBERED
    settle = player.learner.cancel if cancelled else player.learner.tell
    same = (decision, costs) if cancelled else (decision, reward, costs)
    if forgotten:
        player.refused(lambda: settle(*same), AlreadyToldError)
        return
    player.unchanged(lambda: settle(*same))
    other = [cost + unit for cost, unit in zip(costs, player.typical().tolist(), strict=True)]
    player.refused(lambda: player.learner.tell(decision, reward, other), AlreadyToldError)
    player.refused(lambda: player.learner.cancel(decision, other), AlreadyToldError)
    player.refused(lambda: player.learner.forfeit(decision), AlreadyToldError)


def tell_many(player: Player) -> None:
    """Tell the outcomes of all or some decisions of a batch."""
    held = player.take(single=False)
    if held is None:
        return
    if player.chance(0.3) and len(held.arms) > 1 and not held.forfeited:
        chosen = player.rng.random(len(held.arms)) < 0.5
        if not chosen.any():
            chosen[0] = True
        rest, held = held.part(~chosen), held.part(chosen)
        if (rest.arms != SKIP).any():
            player.model.held.append(rest)
    units, amounts = random_costs(player, held)
    rewards = player.rng.random(len(held.arms)) * player.problem.reward_max
    decisions = held.decisions
    assert isinstance(decisions, Decisions)
    player.learner.tell_many(decisions, rewards, amounts)
    made = int((held.arms != SKIP).sum())
    player.count("tell_many", made)
    player.model.settle(held, units)
    if 1 <= made <= 50 and player.chance(0.1):
        player.unchanged(lambda: player.learner.tell_many(decisions, rewards, amounts))
        other = amounts + player.typical()
        player.refused(lambda: player.learner.tell_many(decisions, rewards, other), AlreadyToldError)


def forfeit(player: Player) -> None:
    """Forfeit one decision; the same call again changes nothing."""
    held = player.take(single=True)
    if held is None:
        return
    player.count("forfeit")
    decision = held.decisions
    assert isinstance(decision, Decision)
    player.model.held.append(held)
    if held.forfeited:
        player.unchanged(lambda: player.learner.forfeit(decision))
    elif not held.known.all():
        player.refused(lambda: player.learner.forfeit(decision), SettingError)
    else:
        player.learner.forfeit(decision)
        held.forfeited = True
        player.model.accounts.forfeit(held.season, held.reserved[0].tolist())


def expire(player: Player) -> None:
    """Forfeit decisions that have been pending for too long, by rounds or by time."""
    rounds = int(player.rng.integers(1, 3 * player.largest_batch))
    timed = [held for held in player.model.held if not math.isnan(held.at)]
    by_time = bool(timed) and player.chance(0.5)
    age = float(player.rng.exponential(2_000.0))
    # Divide the pending decisions into those in time and those overdue, by the model.
    waiting, late = [], []
    for held in player.model.held:
        old = player.model.begun - held.rounds > rounds
        if by_time:
            old = np.full(len(held.arms), held.at < player.now - age)
        if held.forfeited or not old.any():
            waiting.append(held)
        elif old.all():
            late.append(held)
        else:
            late.append(held.part(old))
            waiting.append(held.part(~old))
    lost = total_decisions([*late, *(held for held in player.model.held if held.forfeited)])
    if lost > MOST_FORFEITED:
        return
    player.count("expire")
    limit = timedelta(seconds=age) if by_time else rounds
    at = player.now if by_time else None
    if not all(held.known.all() for held in late):
        player.refused(lambda: player.learner.expire(limit, at), SettingError)
        return
    # Compare the learner with the model.
    found = player.learner.expire(limit, at)
    expect("the number of expired decisions", len(found), total_decisions(late))
    for held in late:
        held.forfeited = True
        player.model.accounts.forfeit(held.season, total(held.reserved))
    player.model.held = [held for held in waiting + late if (held.arms != SKIP).any()]


def total_decisions(groups: list[Held]) -> int:
    """The number of decisions for an arm."""
    return sum(int((held.arms != SKIP).sum()) for held in groups)
