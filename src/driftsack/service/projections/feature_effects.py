"""Which features of a request moved a decision, in the units of the campaign and in words."""

from __future__ import annotations

import math
from typing import Final

import msgspec
import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.encoder import Encoder
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.features import vector_of

IN_WORDS: Final = 3  # features in the explanation
NEGLIGIBLE: Final = 0.005  # of the largest reward: smaller effects are not mentioned


class FeatureEffect(msgspec.Struct):
    """What one feature of a request adds to the estimates for a usual request.

    Attributes:
        feature: The name of the feature.
        value: Its value, as the journal has it.
        reward: What it adds to the reward, by arm.
        costs: What it adds to the costs, by arm and resource.
    """

    feature: str
    value: str
    reward: dict[str, float]
    costs: dict[str, dict[str, float]]


def effects_of(campaign: Campaign, context: bytes | None) -> list[FeatureEffect]:
    """Return the effect of each feature of the latest request of a campaign; none if the policy has no such sums.

    Args:
        campaign: The campaign after the decision, which was made from ``context``.
        context: The encoded features.
    """
    encoder = campaign.problem.encoder
    parts = campaign.learner.policy.contributions(campaign.learner.state)
    if encoder is None or context is None or parts is None:
        return []
    first = campaign.config.problem()  # its maxima are the units of the learner
    units, arms = np.array([first.reward_max, *first.cost_max]), campaign.problem.arm_names
    effects, vector, found = parts.effects * units, vector_of(context), []
    for name, places in places_of(encoder).items():
        total = effects[places].sum(axis=0)[: len(arms)]
        known = [(arm, row) for arm, row in zip(arms, total.tolist(), strict=True) if math.isfinite(row[0])]
        rewards = {arm: row[0] for arm, row in known}
        costs = {arm: dict(zip(campaign.resources, row[1:], strict=True)) for arm, row in known}
        found.append(FeatureEffect(name, value_of(encoder, name, places, vector), rewards, costs))
    return found


def places_of(encoder: Encoder) -> dict[str, list[int]]:
    """Return the positions of each feature in the vector; the indicator of a missing number is one of its own."""
    found: dict[str, list[int]] = {name: [k] for k, name in enumerate(encoder.numbers)}
    for at, k in enumerate(encoder.missable):
        found[encoder.numbers[k]].append(encoder.size - len(encoder.missable) + at)
    place = len(encoder.numbers)
    for name in dict(encoder.categories):
        place, slots = encoder.slots(name)
        found[name] = list(range(place, place + slots))
        place += slots
    for name, length in dict(encoder.embeddings).items():
        width = encoder.project or int(length)
        found[name] = list(range(place, place + width))
        place += width
    return found


def value_of(encoder: Encoder, name: str, places: list[int], vector: Floats) -> str:
    """Return the value of a feature in an encoded context, for display."""
    if name in encoder.numbers:
        shown = f"{vector[places[0]]:.4g}"
        return f"missing, {shown} assumed" if vector[places[1:]].any() else shown
    if name in dict(encoder.categories):
        used = [encoder.names[k].removeprefix(f"{name}=") for k in places if vector[k]]
        return "another value" if not used or used[0].startswith("?") else used[0]
    return "an embedding"


def in_words(
    effects: list[FeatureEffect], arm: str | None, mix: dict[str, float], prices: dict[str, float], most: float
) -> list[str]:
    """Say which features spoke for or against the drawn arm, in comparison with the best other one.

    Args:
        effects: The effects of the features.
        arm: The drawn arm; None if the request was skipped.
        mix: The arms that could be drawn.
        prices: The shadow prices, at which costs are subtracted from rewards.
        most: The largest reward.
    """
    nets = {each.feature: net_of(each, prices) for each in effects}
    others = [one for one in mix if one != arm and any(one in net for net in nets.values())]
    if not others or (arm is not None and not any(arm in net for net in nets.values())):
        return []
    totals = {one: sum(net.get(one, 0.0) for net in nets.values()) for one in others}
    rival = max(totals, key=lambda one: totals[one])
    gains = {name: (net[arm] if arm else 0.0) - net[rival] for name, net in nets.items()}
    ranked = sorted(effects, key=lambda each: -abs(gains[each.feature]))[:IN_WORDS]
    return [
        sentence(each, gains[each.feature], arm, rival)
        for each in ranked
        if abs(gains[each.feature]) >= NEGLIGIBLE * most
    ]


def net_of(effect: FeatureEffect, prices: dict[str, float]) -> dict[str, float]:
    """Return what a feature adds to the reward of each arm net of its costs at the shadow prices."""
    return {
        arm: reward - sum(prices[name] * cost for name, cost in effect.costs[arm].items())
        for arm, reward in effect.reward.items()
    }


def sentence(effect: FeatureEffect, gain: float, arm: str | None, rival: str) -> str:
    """Say what one feature did."""
    chosen, verb = arm or "skipping", "speaks for" if gain > 0 else "speaks against"
    parts = []
    for name in [rival] if arm is None else [arm, rival]:
        costs = "".join(f", {cost:+.3g} {resource}" for resource, cost in effect.costs[name].items())
        parts.append(f"{name}: {effect.reward[name]:+.3g} reward{costs}")
    shown = "; ".join(parts)
    return f"{effect.feature} ({effect.value}) {verb} {chosen} rather than {rival}, by {abs(gain):.3g} ({shown})."
