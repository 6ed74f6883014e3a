"""``Algorithm``: the recipe of a learner for online convex optimisation, without state."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from driftsack.core.checks import of_type, whole
from driftsack.core.errors import SettingError
from driftsack.oco.domains import Domain
from driftsack.oco.problem import Problem
from driftsack.oco.state import State

if TYPE_CHECKING:
    from driftsack.oco.learner import Learner
    from driftsack.oco.play import Play


@dataclasses.dataclass(frozen=True)
class Algorithm(abc.ABC):
    """Immutable, hashable settings: ``play`` runs it on a problem, ``start`` makes a learner to ask and tell."""

    @abc.abstractmethod
    def new_state(self, domain: Domain, horizon: int, constraints: int) -> State:
        """The state of a learner before its first round."""

    def play(self, problem: Problem, trials: int = 1, seed: int = 0) -> Play:
        """Play the whole problem: compiled where it is made of arrays; ``trials`` only differ if there is noise."""
        from driftsack.oco.play import play  # noqa: PLC0415  (a play holds its algorithm)

        return play(self, problem, trials, seed)

    def start(self, domain: Domain, horizon: int, constraints: int = 1) -> Learner:
        """Start a learner on a domain, for T rounds with d constraints each.

        >>> import driftsack as ds
        >>> learner = ds.oco.VirtualQueue().start(ds.oco.Simplex(2), horizon=100, constraints=1)
        >>> learner.ask()
        array([0.5, 0.5])
        >>> learner.tell(gradients=[[1.0, 0.0], [0.0, 1.0]], values=[-0.1])  # the loss's first
        """
        of_type(domain, Domain, "domain")
        from driftsack.oco.learner import Learner  # noqa: PLC0415  (a learner holds its algorithm)

        rounds = whole(horizon, "horizon", at_least=1)
        return Learner(self, domain, rounds, whole(constraints, "constraints", at_least=1))

    def to_spec(self) -> dict[str, Any]:
        """Name and settings as plain data; :func:`from_spec` reads them back."""
        return {"algorithm": type(self).__name__, **dataclasses.asdict(self)}


def from_spec(spec: Mapping[str, Any]) -> Algorithm:
    """The algorithm that a spec names: ``{"algorithm": "VirtualQueue"}``."""
    settings = dict(spec)
    name = settings.pop("algorithm", None)
    known = {recipe.__name__: recipe for recipe in Algorithm.__subclasses__()}
    if name not in known:
        raise SettingError(f"algorithm must be one of {', '.join(sorted(known))}, got {name!r}.")
    return known[name](**settings)
