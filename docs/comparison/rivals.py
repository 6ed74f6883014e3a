"""Each rival as a router: one class for a library, set up as its documentation shows for this task.

Libraries without budgets learn from ``quality - price . costs``, with one price for each resource that the caller
chooses; a price of 0 ignores costs. Their packages are imported only when a router is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from routing_world import CHANGES, MODELS, REQUESTS, USD, Budgets

import driftsack as ds

Prices = tuple[float, ...]
FORGETTING = 0.01  # of the discounted means, where a library can forget


def scalar(reward: float, costs: NDArray[np.float64], prices: Prices) -> float:
    """The reward less the priced costs."""
    return reward - float(np.dot(prices[: costs.size], costs))


class Driftsack:
    """A policy of driftsack by ask and tell, in real units and without any setting."""

    def __init__(self, policy: ds.Policy, seed: int, budgets: Budgets) -> None:
        """Start the policy."""
        names = ("usd", "seconds")
        amounts = dict(zip(names, budgets.amounts().tolist(), strict=False))
        problem = ds.Problem(horizon=REQUESTS, arms=list(MODELS), budget=amounts)
        self.learner = policy.start(problem, seed=seed)
        self.decision: ds.Decision | None = None

    def choose(self) -> int:
        """Ask."""
        self.decision = self.learner.ask()
        return self.decision.arm

    def learn(self, arm: int, reward: float, costs: NDArray[np.float64]) -> None:  # noqa: ARG002
        """Tell."""
        if self.decision is not None:
            self.learner.tell(self.decision, reward, costs.tolist())


class River:
    """``bandit.EpsilonGreedy`` on exponentially weighted means."""

    def __init__(self, seed: int, prices: Prices) -> None:
        """Make the policy."""
        from river import bandit, stats  # noqa: PLC0415

        self.policy: Any = bandit.EpsilonGreedy(
            epsilon=0.1, reward_obj=stats.EWMean(fading_factor=FORGETTING), burn_in=10, seed=seed
        )
        self.prices = prices

    def choose(self) -> int:
        """Pull."""
        return int(self.policy.pull(list(range(len(MODELS)))))

    def learn(self, arm: int, reward: float, costs: NDArray[np.float64]) -> None:
        """Update the mean of the arm."""
        self.policy.update(arm, scalar(reward, costs, self.prices))


class MabWiser:
    """``LearningPolicy.EpsilonGreedy``; its means are over all pulls."""

    def __init__(self, seed: int, prices: Prices) -> None:
        """Make the bandit with one neutral observation of each arm, which it needs before it predicts."""
        from mabwiser.mab import MAB, LearningPolicy  # noqa: PLC0415

        arms = list(range(len(MODELS)))
        self.mab: Any = MAB(arms, LearningPolicy.EpsilonGreedy(epsilon=0.1), seed=seed)
        self.mab.fit(decisions=arms, rewards=[0.0] * len(arms))
        self.prices = prices

    def choose(self) -> int:
        """Predict."""
        return int(self.mab.predict())

    def learn(self, arm: int, reward: float, costs: NDArray[np.float64]) -> None:
        """Fit one more outcome."""
        self.mab.partial_fit([arm], [scalar(reward, costs, self.prices)])


class VowpalWabbit:
    """``--cb_explore`` with ε = 0.1; its constant learning rate forgets."""

    def __init__(self, seed: int, prices: Prices) -> None:
        """Make the workspace."""
        from vowpalwabbit import Workspace  # noqa: PLC0415

        options = "--power_t 0 -l 0.01 --quiet"
        self.workspace: Any = Workspace(f"--cb_explore {len(MODELS)} --epsilon 0.1 {options}")
        self.rng = np.random.default_rng(seed)
        self.chances = np.ones(len(MODELS)) / len(MODELS)
        self.prices = prices

    def choose(self) -> int:
        """Draw from the probabilities that are predicted."""
        chances = np.array(self.workspace.predict("| constant"))
        self.chances = chances / chances.sum()
        return int(self.rng.choice(len(MODELS), p=self.chances))

    def learn(self, arm: int, reward: float, costs: NDArray[np.float64]) -> None:
        """Learn the loss of the chosen action."""
        loss = -scalar(reward, costs, self.prices)
        self.workspace.learn(f"{arm + 1}:{loss}:{self.chances[arm]} | constant")


class ParetoBandit:
    """``BanditRouter`` with its ``BudgetPacer``; it is told the bill of each answer and, at once, the price cut."""

    def __init__(self, seed: int, budgets: Budgets, alpha: float) -> None:
        """Make the router with exploration ``alpha`` and without features of the prompt: requests are alike."""
        from pareto_bandit import BanditRouter  # noqa: PLC0415
        from pareto_bandit.budget_pacer import BudgetPacer  # noqa: PLC0415
        from pareto_bandit.config import BEST_K3_HPARAMS  # noqa: PLC0415
        from pareto_bandit.feature_service import FeatureService  # noqa: PLC0415

        per_million = 1e6 * USD[0] / 1_000  # requests of a thousand tokens
        registry = {
            name: {"input_cost_per_m": price, "output_cost_per_m": price}
            for name, price in zip(MODELS, per_million.tolist(), strict=True)
        }
        self.router: Any = BanditRouter.create(
            model_registry=registry,
            feature_service=FeatureService.for_precomputed(dimension=1),
            priors="none",
            alpha=alpha,
            budget_pacer=BudgetPacer(budgets.usd / REQUESTS),
            forgetting_factor=BEST_K3_HPARAMS["forgetting_factor"],
            bandit_seed=seed,
        )
        self.log: Any = None
        self.requests = 0

    def choose(self) -> int:
        """Route."""
        if self.requests == CHANGES[0]:
            price = 1e6 * USD[1, 2] / 1_000
            self.router.update_model_pricing("large", input_cost_per_m=price, output_cost_per_m=price)
        self.requests += 1
        model, self.log = self.router.route(np.ones(1), input_tokens=500, output_tokens=500)
        return MODELS.index(model)

    def learn(self, arm: int, reward: float, costs: NDArray[np.float64]) -> None:  # noqa: ARG002
        """Give the feedback, with the true cost in place of the estimate from the price list."""
        self.log.cost_usd = float(costs[0])
        self.router.process_feedback(self.log.request_id, reward=reward)


class Always:
    """One model for every request."""

    def __init__(self, arm: int, seed: int) -> None:  # noqa: ARG002
        """Keep the model."""
        self.arm = arm

    def choose(self) -> int:
        """The model."""
        return self.arm

    def learn(self, arm: int, reward: float, costs: NDArray[np.float64]) -> None:
        """Learn nothing."""
