"""The table of ``python -m lab scenarios``.

Rewards are means over the seeds, minus the penalties for unserved musts. The even-pace ceiling is given in units of
reward, and everything else as a share of it. It is a reference, not a bound: it does not know the future either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from lab.scenarios.catalogue import ENTRIES, make
from lab.scenarios.ceilings import EvenPace, TwoSpeed
from lab.scenarios.play import DriftsackRule, ScenarioPlay, hand_written, play
from lab.scenarios.scenario import Rule, Scenario

Row = dict[str, Any]
OURS, HARD, EVEN, TWO_SPEED = "ours", "safe=True", "even pace", "two-speed"
TITLE: Final = "Scenarios"
NOTE: Final = (
    "Rewards are means over the seeds, minus penalties for unserved musts. *Even pace* is in units of reward; *ours*, "
    "*safe=True*, *by hand* (the better of two rules) and *two-speed* are shares of it. *Ours* has statistical "
    "reservations where bills are late, as docs/late-outcomes.md recommends, and *safe=True* hard ones everywhere. "
    "*Ahead* is by how many points *ours* exceeds *by hand*, with its standard error over seeds, and *way* the share "
    "of the way from *by hand* to the better ceiling. *Unspent* is our unspent share of the tightest budget, and "
    "*refused* our number of choices that would have exceeded a budget."
)


def players(name: str) -> dict[str, Callable[[Scenario], Rule]]:
    """Everything that plays a scenario, by name."""
    by_hand = {rule: hand_written(maker) for rule, maker in ENTRIES[name].rules.items()}
    ours = {OURS: DriftsackRule, HARD: lambda scenario: DriftsackRule(scenario, safe=True)}
    return {**ours, **by_hand, EVEN: EvenPace, TWO_SPEED: TwoSpeed}


def scenario_row(name: str, seeds: Sequence[int], final: bool, show: Callable[[str], None]) -> Row:
    """Play one scenario for each seed with every rule."""
    plays: dict[str, list[ScenarioPlay]] = {player: [] for player in players(name)}
    for seed in seeds:
        scenario = make(name, seed, final)
        for player, start in players(name).items():
            if player == HARD and not scenario.late_bills:
                plays[HARD].append(plays[OURS][-1])  # the same
                continue
            show(f"{name}, seed {seed}: {player}")
            plays[player].append(play(scenario, start(scenario)))
    # Compare with the best hand-written rule and the informed ceilings.
    reward = {player: float(np.mean([one.reward for one in played])) for player, played in plays.items()}
    rule = max(ENTRIES[name].rules, key=lambda one: reward[one])
    unspent = {player: np.mean([one.unspent for one in played], axis=0) for player, played in plays.items()}
    tightest = int(np.argmin(unspent[EVEN]))
    each = [a.reward / b.reward for a, b in zip(plays[OURS], plays[EVEN], strict=True)]
    ahead = [100.0 * (a.reward - b.reward) / reward[EVEN] for a, b in zip(plays[OURS], plays[rule], strict=True)]
    error = float(np.std(ahead, ddof=1) / np.sqrt(len(ahead))) if len(ahead) > 1 else 0.0
    room = max(reward[TWO_SPEED], reward[EVEN]) - reward[rule]
    return {
        "scenario": name,
        OURS: round(reward[OURS] / reward[EVEN], 3),
        "ahead": f"{np.mean(ahead):+.1f} ± {error:.1f}",
        "way": round((reward[OURS] - reward[rule]) / room, 2) if room > 0.0 else None,
        HARD: round(reward[HARD] / reward[EVEN], 3),
        "by hand": round(reward[rule] / reward[EVEN], 3),
        "which": rule,
        EVEN: round(reward[EVEN], 1),
        TWO_SPEED: round(reward[TWO_SPEED] / reward[EVEN], 3),
        "unspent": round(float(unspent[OURS][tightest]), 3),
        "refused": refusals(plays[OURS]),
        "by seed": " ".join(f"{share:.3f}" for share in each),
        "unspent by hand": round(float(unspent[rule][tightest]), 3),
        "skipped": int(np.mean([one.skipped for one in plays[OURS]])),
        "refused by hand": refusals(plays[rule]),
        "musts unserved": int(np.mean([one.musts_unserved for one in plays[OURS]])),
    }


def refusals(plays: Iterable[ScenarioPlay]) -> int:
    """Mean number of refused choices."""
    return int(np.mean([np.sum(one.refused >= 0) for one in plays]))


def scenario_rows(names: Iterable[str], seeds: Sequence[int], final: bool, show: Callable[[str], None]) -> list[Row]:
    """One row for each scenario."""
    return [scenario_row(name, seeds, final, show) for name in names]


def to_markdown(rows: Sequence[Row], command: str) -> str:
    """The rows as a Markdown page."""
    names = list(rows[0])
    lines = [f"# {TITLE}", "", f"Written by `{command}`; do not edit.", "", NOTE, ""]
    lines += [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    lines += [f"| {' | '.join(str(row[name]) for name in names)} |" for row in rows]
    return "\n".join(lines) + "\n"
