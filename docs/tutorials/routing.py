"""Route requests to three models under a cost budget and a latency budget, with ask and tell."""

from __future__ import annotations

import sys
import tempfile
from collections import deque
from pathlib import Path

import numpy as np

import driftsack as ds
from driftsack.plot.style import LINES, new_figure

MODELS = ("small", "medium", "large")
REQUESTS = 6_000
DOLLARS, SECONDS = 48.0, 7_200.0


def answer(model: int, request: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """Return quality, dollars and seconds of one answer; the router does not know these distributions."""
    later = request > REQUESTS // 2  # the medium model gets worse, the large one cheaper and faster
    quality = (0.55, 0.50 if later else 0.75, 0.85)[model]
    dollars = (0.002, 0.010, 0.012 if later else 0.040)[model] * rng.uniform(0.5, 1.5)
    seconds = (0.5, 1.5, 1.6 if later else 4.0)[model] * rng.uniform(0.5, 1.5)
    return float(rng.random() < quality), dollars, seconds


def route(learner: ds.Learner, delay: int = 20) -> tuple[ds.Learner, list[int], float]:
    """Route every request; outcomes arrive ``delay`` requests late, and the process restarts halfway."""
    rng = np.random.default_rng(1)
    asked: deque[tuple[ds.Decision, tuple[float, float, float]]] = deque()
    sent, good = [], 0.0
    while not learner.done:
        decision = learner.ask()
        sent.append(decision.arm)
        if not decision.skipped:
            asked.append((decision, answer(decision.arm, decision.round, rng)))
        if len(asked) > delay:
            old, (quality, dollars, seconds) = asked.popleft()
            learner.tell(old, reward=quality, costs=[dollars, seconds])
            good += quality
        if learner.round == REQUESTS // 2:
            learner = restarted(learner)
    for old, (quality, dollars, seconds) in asked:
        learner.tell(old, reward=quality, costs=[dollars, seconds])
        good += quality
    return learner, sent, good


def restarted(learner: ds.Learner) -> ds.Learner:
    """Save and load the learner, as after a restart of the process; pending decisions are kept."""
    with tempfile.TemporaryDirectory() as directory:
        learner.save(Path(directory) / "router.npz")
        return ds.Learner.load(Path(directory) / "router.npz")


def draw(sent: list[int], path: Path) -> None:
    """Plot the share of requests that each model received, in blocks of 200."""
    figure = new_figure(7, 3.2)
    axes = figure.subplots()
    blocks = np.array(sent).reshape(-1, 200)
    middle = 200 * np.arange(len(blocks)) + 100
    for arm, label in enumerate((*MODELS, "skipped")):
        colour, dash, marker = LINES[arm]
        share = (blocks == (arm if arm < len(MODELS) else ds.SKIP)).mean(axis=1)
        axes.plot(middle, share, dash, color=colour, marker=marker, markersize=3, label=label)
    axes.axvline(REQUESTS / 2, color="grey", linewidth=1)
    axes.annotate("the models change", (REQUESTS / 2, 1.0), xytext=(4, -2), textcoords="offset points", fontsize=9)
    axes.set(xlabel="request", ylabel="share of requests", ylim=(-0.02, 1.05), xlim=(0, REQUESTS))
    figure.legend(loc="outside right upper")
    figure.savefig(path, dpi=130)


def main(directory: Path) -> None:
    """Route the requests with seven policies and plot the decisions of the first."""
    problem = ds.Problem(REQUESTS, arms=3, budget=[DOLLARS, SECONDS], cost_max=[0.06, 6.0])
    policies: dict[str, ds.Policy] = {
        "Adaptive": ds.Adaptive(),
        "Thompson sampling, window 1,000": ds.ThompsonBwK(windows=1_000),
        "Thompson sampling, no window": ds.ThompsonBwK(),
        "sliding-window UCB, scale 0.1": ds.SlidingWindowUCB(
            windows=(1_000, 1_000), scale=0.1, budget_rule="remaining"
        ),
        "sliding-window UCB, scale 0.05": ds.SlidingWindowUCB(windows=(1_000, 1_000), scale=0.05),
        "always medium": ds.policies.AlwaysArm(1),
        "always small": ds.policies.AlwaysArm(0),
    }
    for name, policy in policies.items():
        learner, sent, good = route(policy.start(problem, seed=0, safe=True))
        left = ", ".join(f"{amount:,.2f}" for amount in learner.remaining)
        print(f"{name}: {good:,.0f} good answers, {sent.count(ds.SKIP):,} skipped, remaining [{left}]")
        if policy == ds.Adaptive():
            draw(sent, directory / "routing.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
