"""``Policy``: the settings of an algorithm, and the registry that builds policies from plain data."""

from __future__ import annotations

import abc
import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from driftsack.core.arrays import Floats
from driftsack.core.checks import Safe, of_type, share
from driftsack.core.contextual import ContextualInstance
from driftsack.core.errors import SettingError
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed
from driftsack.policies.parts.contributions import Contributions
from driftsack.policies.parts.estimates import Estimates

if TYPE_CHECKING:
    from driftsack.policies.learner import Learner
    from driftsack.policies.learner.teaching import PastOutcomes


@dataclasses.dataclass(frozen=True)
class Policy(abc.ABC):
    """The immutable, hashable settings of an algorithm, without state. ``start`` creates a learner.

    A subclass is a frozen dataclass whose fields are the settings. Its file also holds the state, a ``NamedTuple`` of
    arrays, and the kernels ``choose`` and ``learn`` that act on it (see :mod:`driftsack.authoring`).
    """

    @abc.abstractmethod
    def new_state(self, problem: Problem) -> Any:
        """Build the state of a learner before its first round.

        Args:
            problem: The problem.

        Returns:
            A ``NamedTuple`` of arrays, numbers and further tuples.
        """

    def state_on(self, instance: Instance | ContextualInstance) -> Any:
        """Build the state of a simulated learner before its first round.

        Only an oracle uses the unknown means; every other policy is given the problem alone.

        Args:
            instance: The instance that is simulated.
        """
        return self.new_state(instance.problem)

    def follow_rate(self) -> Policy:
        """Return this policy with its own pacing turned off, for a wrapper that sets the rate of each round.

        A policy that plans with a rate then uses the rate of the round; one that does not plan with a rate is returned
        as it is. A policy that has a spending plan of its own raises an error.
        """
        return self

    @property
    def forgets(self) -> bool | None:
        """Whether old outcomes cease to affect estimates; None for a policy that learns nothing."""
        return False

    @property
    def bounded(self) -> bool:
        """Whether outcomes that it learns from must lie in [0, 1]; otherwise they may be larger."""
        return True

    @property
    def needs_context(self) -> bool:
        """Whether it needs the features of requests."""
        return any(wrapped.needs_context for wrapped in self._wrapped())

    @property
    def known_costs(self) -> bool:
        """Whether it can use the listed costs of a request: it plans with its estimates times ``round.factors``."""
        return False

    @property
    def keeps_floors(self) -> bool:
        """Whether it can minimise a cost subject to floors: it plans with ``round.floors``."""
        return False

    def refuse_floors(self, problem: Problem) -> None:
        """Raise if the problem has floors and the policy cannot keep them; it would maximise the reward instead.

        Args:
            problem: The problem.
        """
        if problem.floor and not self.keeps_floors:
            raise SettingError(
                f"{type(self).__name__} maximises the reward and cannot keep the floor of the problem; use Adaptive, "
                "or omit minimise and floor."
            )

    def announce(self, state: Any, arm: int, cost_factors: Floats) -> None:
        """Adapt to an announced change of an arm's costs; a policy that cannot raises an error.

        The learner multiplies the factors of later requests by ``cost_factors``, so estimates need not be changed, only
        what was planned at earlier factors.

        Args:
            state: The state; changed in place.
            arm: The arm.
            cost_factors: (d,) the factors by which its costs change.
        """
        if not self.known_costs:
            raise SettingError(
                f"{type(self).__name__} cannot use an announcement; policies that can use listed costs such as "
                "Adaptive and LinearBwK can, alone or in a SpendingPlan. Others learn a new price from the costs that "
                "they are told."
            )

    def estimates(self, state: Any) -> Estimates | None:
        """Return what the policy believes about each arm, for explanations such as ``driftsack why``.

        Args:
            state: The state, after a decision.

        Returns:
            The estimates; None if the policy estimates no means, or several sets of them.
        """
        return None

    def contributions(self, state: Any) -> Contributions | None:
        """Return what each feature of the latest request adds to the estimates, for ``driftsack why``.

        Args:
            state: The state, after a decision.

        Returns:
            The parts of the estimates; None if they are not sums over features.
        """
        return None

    @property
    def open_ended(self) -> bool:
        """Whether it can continue after the horizon that it was started with."""
        return all(wrapped.open_ended for wrapped in self._wrapped())

    @property
    def teachable(self) -> bool:
        """Whether it can learn from outcomes of rounds before the first one."""
        return all(wrapped.teachable for wrapped in self._wrapped())

    def rounds_kept(self, problem: Problem) -> int:
        """Return the number of rounds that the state keeps one by one, which limits the memory that a file may need.

        A policy without windows keeps none; one that wraps others keeps theirs.

        Args:
            problem: The problem.
        """
        return sum(wrapped.rounds_kept(problem) for wrapped in self._wrapped())

    def _wrapped(self) -> Iterator[Policy]:
        """Iterate over the policies that are settings of this one."""
        values = (getattr(self, setting.name) for setting in dataclasses.fields(self))
        return (value for value in values if isinstance(value, Policy))

    def warn_about(self, problem: Problem) -> None:
        """Warn about settings that cannot work well on a problem; ``start`` calls it.

        A policy that has nothing to warn about passes the problem on to the policies that it wraps.

        Args:
            problem: The problem.
        """
        for wrapped in self._wrapped():
            wrapped.warn_about(problem)

    def start(
        self,
        problem: Problem,
        seed: Seed = 0,
        safe: Safe = False,
        log: PastOutcomes | None = None,
        half_life: float | None = None,
        explore: float = 0.0,
    ) -> Learner:
        """Start a learner on a problem.

        Args:
            problem: Horizon, arms, budgets and units.
            seed: Seed of the learner's own randomness; None for fresh entropy, so that forked workers differ.
            safe: Whether an arm may be chosen only if every budget covers its maximum cost and what is reserved for all
                pending decisions. If no cost exceeds what was reserved for it, no budget is ever overspent.
                With ``"statistical"``, pending decisions reserve what they are expected to cost and a margin instead of
                their maximum costs; budgets may then be exceeded a little. See :class:`~driftsack.Learner`.
            log: Past outcomes to learn from first, as ``ds.logs.read`` returns them; see ``Learner.teach``.
            half_life: Rounds of the log after which the share of outcomes that are used halves.
            explore: The probability with which a round is given to a uniformly random open arm instead, so that every
                arm has a known, positive probability and the log can answer for other policies; see
                :class:`~driftsack.policies.WithExploration`.
        """
        of_type(problem, Problem, "problem")
        if share(explore, "explore") > 0.0:
            from driftsack.policies.with_exploration import WithExploration

            return WithExploration(self, explore).start(problem, seed, safe, log, half_life)
        self.warn_about(problem)
        from driftsack.policies.learner import Learner

        learner = Learner(self, problem, seed=seed, safe=safe)
        if log is not None:
            learner.teach(log, half_life)
        return learner

    def to_spec(self) -> dict[str, Any]:
        """Return name and settings as plain data.

        Returns:
            A dictionary that ``policies.from_spec`` reads.
        """
        settings = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {"policy": type(self).__name__, **{name: _as_data(value) for name, value in settings.items()}}


def _as_data(value: Any) -> Any:
    """Convert a setting to plain data."""
    if isinstance(value, Policy):
        return value.to_spec()
    return value.to_dict() if isinstance(value, Instance) else value


def from_spec(spec: Mapping[str, Any]) -> Policy:
    """Build the policy that plain data describes.

    Args:
        spec: The name under ``"policy"`` and the settings; a nested policy is a mapping of the same form.

    >>> from_spec({"policy": "AlwaysArm", "arm": 2})
    AlwaysArm(arm=2)
    """
    if not isinstance(spec, Mapping):
        raise SettingError(f'a spec must be a mapping such as {{"policy": "NaiveUCB"}}, got {spec!r:.80}.')
    settings = dict(spec)
    name = settings.pop("policy", None)
    known = {recipe.__name__: recipe for recipe in recipes()}
    known |= {recipe.__name__: recipe for recipe in recipes() if recipe.__module__.startswith("driftsack.")}
    if name not in known:
        raise SettingError(f"policy must be one of {', '.join(sorted(known))}, got {name!r}.")
    fields = [field.name for field in dataclasses.fields(known[name])]
    unknown = sorted(set(settings) - set(fields))
    if unknown:
        raise SettingError(f"{name} takes {', '.join(fields)}, got {', '.join(unknown)}.")
    nested = {key: from_spec(v) for key, v in settings.items() if isinstance(v, Mapping) and "policy" in v}
    return known[name](**settings | nested)


def recipes(root: type[Policy] = Policy) -> Iterator[type[Policy]]:
    """Iterate over the policy classes that have been imported, without the abstract ones that others derive from."""
    for recipe in root.__subclasses__():
        if not inspect.isabstract(recipe):
            yield recipe
        yield from recipes(recipe)
