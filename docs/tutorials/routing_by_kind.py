"""Route requests of three kinds to three models, with and without their features."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import driftsack as ds
from driftsack.plot.style import PALETTE, new_figure

MODELS = ("small", "medium", "large")
KINDS = ("chat", "code", "maths")
SHARES = (0.6, 0.3, 0.1)  # of the requests
REQUESTS = 6_000
DOLLARS = 24.0
QUALITY = np.array([[0.85, 0.88, 0.90], [0.30, 0.80, 0.85], [0.15, 0.40, 0.85]])  # by kind and model
PER_THOUSAND_TOKENS = np.array([0.002, 0.012, 0.040])  # dollars

Request = dict[str, float | str]


def requests() -> list[Request]:
    """Return requests with a kind and a length."""
    rng = np.random.default_rng(1)
    kinds = rng.choice(KINDS, REQUESTS, p=SHARES)
    tokens = rng.lognormal(6.0, 0.5, REQUESTS).clip(50, 2_000)
    return [{"kind": str(kind), "tokens": float(length)} for kind, length in zip(kinds, tokens, strict=True)]


def answer(request: Request, model: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return quality and dollars of one answer; the router does not know these distributions."""
    good = rng.random() < QUALITY[KINDS.index(str(request["kind"])), model]
    return float(good), float(request["tokens"]) / 1_000 * PER_THOUSAND_TOKENS[model]


def route(policy: ds.Policy) -> tuple[float, float, np.ndarray]:
    """Route every request; return good answers, dollars left, and requests by kind and model (the last: skipped)."""
    features = ds.Encoder(numbers=["tokens"], categories={"kind": list(KINDS)})
    problem = ds.Problem(
        horizon=REQUESTS, arms=MODELS, budget={"usd": DOLLARS}, cost_max={"usd": 0.08}, features=features
    )
    learner, rng = policy.start(problem, seed=0, safe=True), np.random.default_rng(2)
    sent, good = np.zeros((len(KINDS), len(MODELS) + 1), dtype=int), 0.0
    for request in requests():
        decision = learner.ask(context=request)
        sent[KINDS.index(str(request["kind"])), decision.arm] += 1  # SKIP is -1: the last column
        if not decision.skipped:
            quality, dollars = answer(request, decision.arm, rng)
            learner.tell(decision, reward=quality, costs={"usd": dollars})
            good += quality
    return good, float(learner.remaining[0]), sent


def draw(sent: dict[str, np.ndarray], path: Path) -> None:
    """Draw which models the requests of each kind went to."""
    figure = new_figure(7, 3.2)
    panels = figure.subplots(1, len(sent), sharey=True)
    for axes, (name, counts) in zip(panels, sent.items(), strict=True):
        shares, floor = counts / counts.sum(axis=1, keepdims=True), np.zeros(len(KINDS))
        for column, label in enumerate((*MODELS, "skipped")):
            colour = "#BBBBBB" if label == "skipped" else PALETTE[column]
            axes.bar(KINDS, shares[:, column], bottom=floor, color=colour, label=label, width=0.7)
            floor += shares[:, column]
        axes.set_title(name, fontsize=10)
        axes.grid(visible=False)
    panels[0].set_ylabel("share of requests")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper")
    figure.savefig(path, dpi=130)


def main(directory: Path) -> None:
    """Route the requests with five policies and draw where those of the first two go."""
    policies: dict[str, ds.Policy] = {
        "LinearBwK": ds.LinearBwK(),
        "Adaptive, no context": ds.Adaptive(),
        "DisjointBwK by kind": ds.DisjointBwK(feature="kind"),
        "always small": ds.policies.AlwaysArm(0),
        "always medium": ds.policies.AlwaysArm(1),
    }
    sent = {}
    for name, policy in policies.items():
        good, left, sent[name] = route(policy)
        print(f"{name}: {good:,.0f} good answers, {sent[name][:, -1].sum():,} skipped, {left:.2f} dollars left")
    draw({name: sent[name] for name in list(policies)[:2]}, directory / "routing_by_kind.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
