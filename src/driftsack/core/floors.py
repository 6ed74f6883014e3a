"""Floors of a problem: the minimum mean reward of the answered requests, and minimum shares of arms among them.

A problem with floors has the opposite goal of one without: it minimises the total cost of one resource, subject to its
floors, instead of maximising the reward. It is written as ``Problem(..., minimise="usd", floor=0.92)``, or with a
mapping: ``floor={"reward": 0.92, "share:large": 0.05}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from driftsack.core.checks import number, whole
from driftsack.core.errors import NamesError, OutOfRangeError, SettingError
from driftsack.core.names import position

REWARD: Final = "reward"
SHARE: Final = "share:"
QUALITY: Final = -1  # in place of an arm: the floor is on the mean reward
ROUNDING: Final = 1e-9  # so that shares such as 0.1 + 0.2 + 0.7 may sum to 1

FloorLike = float | Mapping[str, float] | Sequence[tuple[str, float]]
"""A minimum mean reward, or the floors by name: ``"reward"`` and ``"share:"`` with the name of an arm."""

Floors = tuple[tuple[str, float], ...]
"""The name and the value of each floor, in the problem's units."""


def checked_floors(given: Any, arms: Sequence[str], reward_max: float) -> Floors:
    """Return the floors of a problem after checking that each of them can be reached by some outcomes.

    Args:
        given: The floors; see :data:`FloorLike`. None without floors.
        arms: The names of the arms.
        reward_max: The maximum reward of a round.

    Raises:
        NamesError: A floor has an unknown name, or is for an arm that does not exist.
        OutOfRangeError: A floor is not above 0 or above its maximum, or the shares sum to more than 1.

    >>> checked_floors({"reward": 0.9, "share:large": 0.05}, ["small", "large"], 1.0)
    (('reward', 0.9), ('share:large', 0.05))
    """
    if given is None or given == ():  # the attribute of a problem without floors
        return ()
    floors = tuple((name, _floor(name, value, arms, reward_max)) for name, value in _pairs(given))
    if len({name for name, _ in floors}) < len(floors):
        raise NamesError(f"floor must have one value for each name, got {given!r:.80}.")
    shares = sum(value for name, value in floors if name != REWARD)
    if shares > 1.0 + ROUNDING:
        raise OutOfRangeError(f"the minimum shares of the arms must sum to at most 1, got {shares:g}.")
    return floors


def _pairs(given: Any) -> list[tuple[Any, Any]]:
    """Return the names and the values of floors that are given as a number, a mapping or pairs."""
    if isinstance(given, Mapping):
        if not given:
            raise SettingError(
                'floor must have at least one entry, got an empty mapping; write floor={"reward": 0.92}.'
            )
        return list(given.items())
    if isinstance(given, Iterable) and not isinstance(given, str):
        pairs = list(given)
        if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
            raise SettingError(f'floor must be a number or a mapping such as {{"reward": 0.92}}, got {given!r:.80}.')
        return pairs
    return [(REWARD, given)]


def _floor(name: Any, value: Any, arms: Sequence[str], reward_max: float) -> float:
    """Return one floor after checking it."""
    if name == REWARD:
        least = number(value, "floor")
        if not 0.0 < least <= reward_max:
            raise OutOfRangeError(
                f"the floor of the mean reward must be above 0 and at most reward_max, {reward_max:g}, got {least:g}."
            )
        return least
    if not isinstance(name, str) or not name.startswith(SHARE):
        raise NamesError(f'floor must have the names "reward" or "share:" and an arm, got {name!r:.80}.')
    position(name.removeprefix(SHARE), arms, "the arm of a minimum share")
    share = number(value, f"the floor of {name!r}")
    if not 0.0 < share <= 1.0:
        raise OutOfRangeError(f"the floor of {name!r} must be above 0 and at most 1, got {share:g}.")
    return share


def arm_of(name: str, arms: Sequence[str]) -> int:
    """Return the arm whose share a floor is for, or ``QUALITY`` for the floor of the mean reward."""
    return QUALITY if name == REWARD else position(name.removeprefix(SHARE), arms, "floor")


def checked_goal(minimise: Any, floors: Floors, resources: Sequence[str]) -> str | None:
    """Return the name of the resource whose cost is minimised, which needs a floor; None without floors.

    Raises:
        SettingError: There is a floor without a resource to minimise, or the opposite.
        NamesError: There is no such resource.
    """
    if minimise is None:
        if floors:
            raise SettingError('a floor needs the resource whose cost is to be minimised; add minimise="usd", say.')
        return None
    if not floors:
        raise SettingError(
            "minimise needs a floor, since the cheapest is to answer nothing; add floor=0.92, the least mean reward."
        )
    if isinstance(minimise, str):
        return resources[position(minimise, resources, "minimise")]
    return resources[whole(minimise, "minimise", 0, len(resources) - 1)]
