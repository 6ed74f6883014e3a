"""``Algorithm``: the settings of an algorithm for online convex optimisation, without state."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from driftsack.core.checks import of_type, whole
from driftsack.core.errors import SettingError
from driftsack.oco.domains import Domain
from driftsack.oco.problem import ConvexProblem
from driftsack.oco.state import State

if TYPE_CHECKING:
    from driftsack.oco.learner import OnlineLearner
    from driftsack.oco.play import Play


@dataclasses.dataclass(frozen=True)
class Algorithm(abc.ABC):
    """The immutable, hashable settings of an algorithm.

    :meth:`play` runs it on a whole problem; :meth:`start` makes a learner with ``ask`` and ``tell``.
    """

    @abc.abstractmethod
    def new_state(self, domain: Domain, horizon: int, constraints: int) -> State:
        """Create the state before the first round.

        Args:
            domain: The set of decisions.
            horizon: The number T of rounds.
            constraints: The number d of constraints per round.
        """

    def play(self, problem: ConvexProblem, trials: int = 1, seed: int = 0) -> Play:
        """Play all rounds of a problem; in compiled code if its functions are arrays.

        Args:
            problem: The problem.
            trials: The number of trials. They differ only if the problem has noise.
            seed: The seed of the noise. Trial k depends on ``(seed, k)`` only.
        """
        from driftsack.oco.play import play

        return play(self, problem, trials, seed)

    def start(self, domain: Domain, horizon: int, constraints: int = 1) -> OnlineLearner:
        """Start a learner.

        Args:
            domain: The set of decisions.
            horizon: The number T of rounds.
            constraints: The number d of constraints per round.

        >>> import driftsack as ds
        >>> learner = ds.oco.VirtualQueue().start(ds.oco.ScaledSimplex(2), horizon=100, constraints=1)
        >>> learner.ask()
        array([0.5, 0.5])
        >>> learner.tell(gradients=[[1.0, 0.0], [0.0, 1.0]], values=[-0.1])  # the gradient of the loss comes first
        """
        of_type(domain, Domain, "domain")
        from driftsack.oco.learner import OnlineLearner

        rounds = whole(horizon, "horizon", at_least=1)
        return OnlineLearner(self, domain, rounds, whole(constraints, "constraints", at_least=1))

    def to_spec(self) -> dict[str, Any]:
        """Return the name and the settings as plain data, which :func:`from_spec` reads."""
        return {"algorithm": type(self).__name__, **dataclasses.asdict(self)}


def from_spec(spec: Mapping[str, Any]) -> Algorithm:
    """Build the algorithm that a spec such as ``{"algorithm": "VirtualQueue"}`` names."""
    settings = dict(spec)
    name = settings.pop("algorithm", None)
    known = {algorithm.__name__: algorithm for algorithm in Algorithm.__subclasses__()}
    if name not in known:
        raise SettingError(f"algorithm must be one of {', '.join(sorted(known))}, got {name!r}.")
    return known[name](**settings)
