"""``Learner``: an algorithm started on a domain. Ask for a point, act, tell gradients and values."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from driftsack.core import file_format
from driftsack.core.arrays import Floats
from driftsack.core.checks import floats, vector
from driftsack.core.errors import AlreadyToldError, FileFormatError, HorizonReachedError
from driftsack.oco import domains
from driftsack.oco.algorithm import Algorithm, from_spec
from driftsack.oco.domains import Domain
from driftsack.oco.loop import aim, settle

_VERSION = 1


class Learner:
    """One round is one ``ask`` and one ``tell``; a refused ``tell`` leaves the learner as it was.

    >>> import driftsack as ds
    >>> learner = ds.oco.VirtualQueue().start(ds.oco.Box(0, 1), horizon=100, constraints=1)
    >>> x = learner.ask()
    >>> learner.tell(gradients=[[-1.0], [1.0]], values=x - 0.25)
    >>> learner.round, learner.ask()
    (1, array([0.55]))
    """

    def __init__(self, algorithm: Algorithm, domain: Domain, horizon: int, constraints: int) -> None:
        self.algorithm = algorithm
        self.domain = domain
        self.horizon = horizon
        self.constraints = constraints
        self._state = algorithm.new_state(domain, horizon, constraints)
        self._asked = False

    @property
    def round(self) -> int:
        """How many rounds have been told."""
        return int(self._state.clock[0])

    @property
    def prices(self) -> Floats:
        """(d,) what the learner takes a unit of each constraint to weigh: its queues or multipliers."""
        return self._state.prices.copy()

    def ask(self) -> Floats:
        """(n,) the decision of the present round; asking again gives the same."""
        if self.round >= self.horizon:
            raise HorizonReachedError(f"all {self.horizon} rounds have been told; start a new learner for more.")
        self._asked = True
        return self._state.point.copy()

    def tell(self, gradients: npt.ArrayLike, values: npt.ArrayLike) -> None:
        """End the round: ``gradients`` (1 + d, n), the loss's first; ``values`` (d,) of the constraints; all at x."""
        if not self._asked:
            raise AlreadyToldError(f"round {self.round + 1} has not been asked; ask for its point first, tell once.")
        slopes = floats(gradients, "gradients", (1 + self.constraints, self.domain.dimension))
        levels = np.concatenate([[0.0], vector(values, "values", self.constraints)])  # no algorithm reads the loss's
        aim(self._state, slopes)
        self.domain.move_inside(self._state.target)
        settle(self._state, levels, slopes)
        self._asked = False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to one file; :meth:`load` goes on from there, bit for bit."""
        content = {
            "algorithm": self.algorithm.to_spec(),
            "domain": self.domain.to_dict(),
            "horizon": self.horizon,
            "constraints": self.constraints,
            "asked": self._asked,
        }
        file_format.write(path, "oco learner", _VERSION, content, self._arrays())

    def _arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """What changes."""
        state = self._state
        return {"clock": state.clock, "point": state.point, "prices": state.prices}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Learner:
        """Read what :meth:`save` wrote."""
        content, stored = file_format.read(path, "oco learner", _VERSION)
        try:
            domain = domains.from_dict(content["domain"])
            horizon, constraints = int(content["horizon"]), int(content["constraints"])
            learner = cls(from_spec(content["algorithm"]), domain, horizon, constraints)
            for name, place in learner._arrays().items():
                if stored[name].shape != place.shape or stored[name].dtype != place.dtype:
                    raise ValueError(f"array {name} has another shape or type than this learner needs")
                place[...] = stored[name]
            learner._asked = bool(content["asked"])
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"{path} holds a learner that does not fit together: {error}") from error
        return learner

    def __repr__(self) -> str:
        return f"Learner({self.algorithm}, round {self.round} of {self.horizon})"
