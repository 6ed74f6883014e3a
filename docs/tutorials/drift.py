"""Measure the drift of a log: V with its noise floor, so that noise is not called drift."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import driftsack as ds
from driftsack.core.checks import Floats, Ints
from driftsack.plot.style import BLUE, GREY, ORANGE, new_figure

ROUNDS, BLOCKS, SHUFFLES = 6_000, 12, 500


def log(world: ds.Instance, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """(T,) arms tried at random and (T,) what they earned, 0 or 1."""
    arms = rng.integers(world.arms, size=world.horizon)
    means = world.rewards[world.phase, arms]
    return arms, (rng.random(world.horizon) < means).astype(np.float64)


def block_means(arms: Ints, rewards: Floats, count: int) -> Floats:
    """(blocks, m) the mean reward of each arm in each block of rounds."""
    block = np.arange(arms.size) * BLOCKS // arms.size
    place = block * count + arms
    pulls = np.bincount(place, minlength=BLOCKS * count)
    sums = np.bincount(place, weights=rewards, minlength=BLOCKS * count)
    means: Floats = (sums / np.maximum(pulls, 1)).reshape(BLOCKS, count)
    return means


def moved(means: Floats) -> float:
    """V1 of the block means: the sum over blocks of the largest change of any arm."""
    return float(np.abs(np.diff(means, axis=0)).max(axis=1).sum())


def main(folder: Path) -> None:
    """Two logs, one of a world that changes; for each V and what shuffled rows would give."""
    rng = np.random.default_rng(0)
    worlds = {
        "changes": ds.instances.example_2(ROUNDS),
        "stands still": ds.Instance.stationary([0.4, 0.5], [[0.5, 0.5]], ROUNDS, budget=ROUNDS / 2),
    }
    figure = new_figure(8, 3.2)
    for axes, (name, world) in zip(figure.subplots(1, 2, sharey=True), worlds.items(), strict=True):
        arms, rewards = log(world, rng)
        seen = moved(block_means(arms, rewards, world.arms))
        orders = (rng.permutation(ROUNDS) for _ in range(SHUFFLES))
        floor = np.array([moved(block_means(arms[order], rewards[order], world.arms)) for order in orders])
        beyond = (1 + (floor >= seen).sum()) / (1 + SHUFFLES)
        truth = ds.variation(world).v1
        print(
            f"{name}: V1 looks like {seen:.2f}, shuffled {floor.mean():.2f}, p = {beyond:.3f}; the truth is {truth:g}"
        )
        axes.hist(floor, bins=30, color=GREY, alpha=0.6, label=f"{SHUFFLES} shuffled logs")
        axes.axvline(seen, color=ORANGE, label="this log")
        axes.axvline(truth, color=BLUE, linestyle="--", label="the truth")
        axes.set(title=f"a world that {name}", xlabel="V1 of block means", xlim=(-0.05, 1.5))
    figure.axes[0].set_ylabel("shuffled logs")
    figure.axes[1].legend(fontsize=8, loc="upper right")
    figure.savefig(folder / "drift.png", dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
