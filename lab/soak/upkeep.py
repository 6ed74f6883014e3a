"""Operations of the soak that change the arms, the budgets or the number of rounds."""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.core.errors import (
    InfeasibleError,
    NamesError,
    SettingError,
)
from lab.soak.model import Arm, expect
from lab.soak.player import Player

MOST_ARMS: Final = 7


def add_arm(player: Player) -> None:
    """Add an arm, with its own maximum costs or with those of the problem."""
    if len(player.model.arms) >= MOST_ARMS:
        return
    player.count("add_arm")
    most = np.max([arm.cost_max for arm in player.model.arms], axis=0)
    given: list[float] | None = None
    if player.model.bounded and player.chance(0.6):
        given = (most * float(player.rng.choice([1.0, 0.5, 0.2, 3.0]))).tolist()
    name = f"arm {len(player.model.arms)}"
    column = most.tolist() if given is None else given
    too_dear = (np.array(column) > np.array(player.problem.cost_max)).any() and player.world.policy.bounded
    if (too_dear and player.model.bounded) or not player.world.policy.open_ended:
        player.refused(lambda: player.learner.add_arm(name, given), SettingError)
        return
    expect("the number of the new arm", player.learner.add_arm(name, given), len(player.model.arms))
    player.model.arms.append(Arm(name, column, player.model.accounts.units(column, up=True)))
    player.refused(lambda: player.learner.add_arm(name), NamesError)


def retire_arm(player: Player) -> None:
    """Retire an arm, by name or number."""
    player.count("retire_arm")
    number = int(player.rng.integers(len(player.model.arms)))
    arm = player.model.arms[number].name if player.chance(0.5) else number
    if number == player.model.fallback:
        player.refused(lambda: player.learner.retire_arm(arm), SettingError)
        return
    player.learner.retire_arm(arm)
    player.model.arms[number].offered = False


def reopen_arm(player: Player) -> None:
    """Offer an arm again, usually a retired one."""
    player.count("reopen_arm")
    retired = [k for k, arm in enumerate(player.model.arms) if not arm.offered]
    number = int(player.rng.choice(retired)) if retired else 0
    player.learner.reopen_arm(player.model.arms[number].name if player.chance(0.5) else number)
    player.model.arms[number].offered = True


def some_budget(player: Player) -> list[float]:
    """Draw budgets for some of the rounds, or return those of the problem."""
    problem = player.problem
    amounts = np.array(problem.budget)
    if player.chance(0.4):
        amounts = player.typical() * player.rng.integers(0, problem.horizon + 1, problem.resources)
    elif player.chance(0.5):
        amounts = amounts * player.rng.random(problem.resources)
    return [float(amount) for amount in amounts]


def grant(player: Player) -> None:
    """Add to the budgets."""
    player.count("grant")
    added = (np.array(some_budget(player)) * 0.1).tolist()
    if player.chance(0.5):
        player.learner.grant(**dict(zip(player.problem.resource_names, added, strict=True)))
    else:
        player.learner.grant(added)
    player.model.accounts.grant(added)


def renew(player: Player) -> None:
    """Begin a new season."""
    player.count("renew")
    budget = None if player.chance(0.4) else some_budget(player)
    amounts = list(player.problem.budget) if budget is None else budget
    rollover = float(player.rng.choice([0.0, 1.0, 0.5, 0.3, 0.9, player.rng.random()]))
    rounds = None if player.chance(0.5) else int(player.rng.integers(1, 2 * player.problem.horizon + 1))
    count = player.problem.horizon if rounds is None else rounds
    at = player.now if player.start is not None else None
    accounts = player.model.accounts

    def call() -> None:
        player.learner.renew(budget, rollover, rounds, at)

    if not player.world.policy.open_ended:
        player.refused(call, SettingError)
    elif player.model.lacks_for_fallback(count, accounts.units(amounts)):
        player.refused(call, InfeasibleError)
    else:
        call()
        player.tally.events["renewed with pending decisions"] += bool(player.model.held)
        accounts.renew(amounts, rollover)
        player.model.last = None if player.problem.period is not None else player.model.begun + count
        player.start = None if player.start is None else player.now


def revise(player: Player) -> None:
    """Revise the number of remaining rounds."""
    player.count("revise")
    rounds = int(player.rng.integers(0, 2 * player.problem.horizon + 1))

    def call() -> None:
        player.learner.revise(rounds)

    if not player.world.policy.open_ended or player.problem.period is not None:
        player.refused(call, SettingError)
    elif player.model.lacks_for_fallback(rounds, player.model.accounts.room()):
        player.refused(call, InfeasibleError)
    else:
        call()
        player.model.last = player.model.begun + rounds
