"""Every library as a router: choose an arm, then learn from the outcome; set up as its documentation recommends.

Libraries without budgets learn from ``reward - price . costs``, with one price per resource that the caller chooses; a
price of 0 ignores the costs. The packages are imported only when a router is made.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.decision import Decision
from driftsack.core.problem import Problem
from driftsack.logs import Log
from driftsack.policies import Policy

Prices = tuple[float, ...]
TokenPrices = tuple[float, float]  # dollars per million tokens in and out
FORGETTING: Final = 0.01  # of the discounted means, where a library can forget


class Router(Protocol):
    """The interface of every adapter."""

    def choose(self) -> int:
        """The arm of the next request, or -1 to leave it unanswered."""
        ...

    def learn(self, arm: int, reward: float, costs: Floats) -> None:
        """Learn from an outcome."""
        ...


def scalar(reward: float, costs: Floats, prices: Prices) -> float:
    """The reward minus the priced costs.

    >>> scalar(1.0, np.array([0.25]), (2.0, 0.1))
    0.5
    """
    return reward - float(np.dot(prices[: costs.size], costs))


class DriftsackRouter:
    """A policy of driftsack, asked and told in real units."""

    def __init__(self, policy: Policy, problem: Problem, seed: int, safe: bool = False, log: Log | None = None) -> None:
        self.learner = policy.start(problem, seed=seed, safe=safe, log=log)
        self._decision: Decision | None = None

    def choose(self, context: Floats | None = None) -> int:
        """Ask."""
        self._decision = self.learner.ask(context=context)
        return self._decision.arm

    def learn(self, arm: int, reward: float, costs: Floats) -> None:
        """Tell."""
        if self._decision is not None:
            self.learner.tell(self._decision, reward, costs)


class River:
    """``bandit.EpsilonGreedy`` on exponentially weighted means."""

    def __init__(self, arms: int, seed: int, prices: Prices) -> None:
        from river import bandit, stats

        self._policy: Any = bandit.EpsilonGreedy(
            epsilon=0.1, reward_obj=stats.EWMean(fading_factor=FORGETTING), burn_in=10, seed=seed
        )
        self._arms, self._prices = list(range(arms)), prices

    def choose(self) -> int:
        """Pull."""
        return int(self._policy.pull(self._arms))

    def learn(self, arm: int, reward: float, costs: Floats) -> None:
        """Update the mean of the arm."""
        self._policy.update(arm, scalar(reward, costs, self._prices))


class MabWiser:
    """``LearningPolicy.EpsilonGreedy``; its means are over all pulls."""

    def __init__(self, arms: int, seed: int, prices: Prices) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        names = list(range(arms))
        self._mab: Any = MAB(names, LearningPolicy.EpsilonGreedy(epsilon=0.1), seed=seed)
        self._mab.fit(decisions=names, rewards=[0.0] * arms)  # it predicts only after an observation of each arm
        self._prices = prices

    def choose(self) -> int:
        """Predict."""
        return int(self._mab.predict())

    def learn(self, arm: int, reward: float, costs: Floats) -> None:
        """Fit another outcome."""
        self._mab.partial_fit([arm], [scalar(reward, costs, self._prices)])


class VowpalWabbit:
    """``--cb_explore`` with ε = 0.1; its constant learning rate forgets."""

    def __init__(self, arms: int, seed: int, prices: Prices) -> None:
        from vowpalwabbit import Workspace

        options = "--power_t 0 -l 0.01 --quiet"
        self._workspace: Any = Workspace(f"--cb_explore {arms} --epsilon 0.1 {options}")
        self._rng = np.random.default_rng(seed)
        self._chances = np.ones(arms) / arms
        self._prices = prices

    def choose(self) -> int:
        """Draw from the predicted probabilities."""
        chances = np.array(self._workspace.predict("| constant"))
        self._chances = chances / chances.sum()
        return int(self._rng.choice(chances.size, p=self._chances))

    def learn(self, arm: int, reward: float, costs: Floats) -> None:
        """Learn the loss of the chosen action."""
        loss = -scalar(reward, costs, self._prices)
        self._workspace.learn(f"{arm + 1}:{loss}:{self._chances[arm]} | constant")


class ParetoBandit:
    """``BanditRouter`` with its ``BudgetPacer``; it is told the cost of each answer and changes of list prices.

    Args:
        models: The names of the models.
        prices: Their list prices.
        rate: The budget in dollars per request.
        alpha: The exploration; its default is 0.01.
        dimension: The number of features, of which the last is its intercept.
        price_changes: Arms and their new list prices, by the number of the request before which they change.
        tokens: Tokens in and out of a request, if they are known.
        past: Features (n, dimension) and rewards (n, models) of past requests, from which its priors are computed.
    """

    def __init__(
        self,
        models: Sequence[str],
        prices: Sequence[TokenPrices],
        rate: float,
        alpha: float,
        seed: int,
        dimension: int = 1,
        price_changes: Mapping[int, tuple[int, TokenPrices]] | None = None,
        tokens: tuple[int, int] | None = None,
        past: tuple[Floats, Floats] | None = None,
    ) -> None:
        from pareto_bandit import BanditRouter
        from pareto_bandit.budget_pacer import BudgetPacer
        from pareto_bandit.config import BEST_K3_HPARAMS
        from pareto_bandit.feature_service import FeatureService
        from pareto_bandit.storage import EphemeralContextStore

        self._models, self._price_changes = list(models), price_changes or {}
        self._tokens = {} if tokens is None else {"input_tokens": tokens[0], "output_tokens": tokens[1]}
        self._requests, self._log = 0, None
        listed = {name: token_prices(*price) for name, price in zip(models, prices, strict=True)}
        with tempfile.TemporaryDirectory() as directory:
            self._router: Any = BanditRouter.create(
                model_registry=listed,
                feature_service=FeatureService.for_precomputed(dimension=dimension),
                context_store=EphemeralContextStore(),
                priors="none" if past is None else write_priors(models, *past, Path(directory) / "priors.joblib"),
                alpha=alpha,
                budget_pacer=BudgetPacer(rate),
                forgetting_factor=BEST_K3_HPARAMS["forgetting_factor"],
                bandit_seed=seed,
            )

    def choose(self, context: Floats | None = None) -> int:
        """Announce a change of prices if there is one, and route; without features, requests are alike."""
        if self._requests in self._price_changes:
            arm, prices = self._price_changes[self._requests]
            self._router.update_model_pricing(self._models[arm], **token_prices(*prices))
        self._requests += 1
        model, self._log = self._router.route(np.ones(1) if context is None else context, **self._tokens)
        return self._models.index(model)

    def learn(self, arm: int, reward: float, costs: Floats) -> None:
        """Give the feedback, with the true cost in place of the estimate from the price list."""
        log: Any = self._log
        log.cost_usd = float(costs[0])
        self._router.process_feedback(log.request_id, reward=reward)


def token_prices(tokens_in: float, tokens_out: float) -> dict[str, float]:
    """List prices as ParetoBandit names them."""
    return {"input_cost_per_m": tokens_in, "output_cost_per_m": tokens_out}


def write_priors(models: Sequence[str], rows: Floats, rewards: Floats, path: Path) -> str:
    """Write priors as ParetoBandit's own function does, as sums over past requests, and return their path."""
    import joblib

    precision = {model: np.eye(rows.shape[1]) + rows.T @ rows for model in models}
    target = {model: rows.T @ rewards[:, arm] for arm, model in enumerate(models)}
    joblib.dump({"A": precision, "b": target, "models": list(models), "pca_whitened": False}, path)
    return str(path)


class Always:
    """One arm for every request."""

    def __init__(self, arm: int) -> None:
        self.arm = arm

    def choose(self) -> int:
        """The arm."""
        return self.arm

    def learn(self, arm: int, reward: float, costs: Floats) -> None:
        """Learn nothing."""
