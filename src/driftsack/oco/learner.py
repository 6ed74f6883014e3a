"""``OnlineLearner``: an algorithm started on a domain, with ``ask`` and ``tell``."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from driftsack.core import file_format
from driftsack.core.arrays import Floats
from driftsack.core.checks import LARGEST_INT, flag, floats, vector, whole
from driftsack.core.errors import AlreadyToldError, FileFormatError, HorizonReachedError
from driftsack.oco import domains
from driftsack.oco.algorithm import Algorithm, from_spec
from driftsack.oco.domains import Domain
from driftsack.oco.loop import finish_round, gradient_step

_VERSION = 2


class OnlineLearner:
    """An algorithm started on a domain; each round is one ``ask`` and one ``tell``.

    A ``tell`` that raises an error leaves the learner unchanged.

    Args:
        algorithm: The algorithm's settings.
        domain: The set of decisions.
        horizon: The number T of rounds.
        constraints: The number d of constraints per round.

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
        """The number of completed rounds."""
        return int(self._state.completed[0])

    @property
    def prices(self) -> Floats:
        """(d,) the virtual queue, multiplier or counted violation of each constraint."""
        return self._state.prices.copy()

    def ask(self) -> Floats:
        """Return the decision of the current round; asking again returns the same.

        Returns:
            (n,) the decision x.

        Raises:
            HorizonReachedError: If all rounds are completed.
        """
        if self.round >= self.horizon:
            raise HorizonReachedError(f"all {self.horizon} rounds are completed; start a new learner for more.")
        self._asked = True
        return self._state.point.copy()

    def tell(self, gradients: npt.ArrayLike, values: npt.ArrayLike) -> None:
        """Complete the current round with the functions observed at its decision x.

        Args:
            gradients: (1 + d, n) the gradients of the loss and then of the constraints at x.
            values: (d,) the values of the constraints at x.

        Raises:
            AlreadyToldError: If the round has not been asked for.
        """
        if not self._asked:
            raise AlreadyToldError(f"round {self.round + 1} has not been asked; ask for its point first, tell once.")
        slopes = floats(gradients, "gradients", (1 + self.constraints, self.domain.dimension))
        loss_unused = [0.0]  # no algorithm reads the value of the loss
        levels = np.concatenate([loss_unused, vector(values, "values", self.constraints)])
        gradient_step(self._state, levels, slopes)
        self.domain.move_inside(self._state.target)
        finish_round(self._state, levels, slopes)
        self._asked = False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to a file, from which :meth:`load` restores it bit for bit.

        Args:
            path: The file to write.
        """
        content = {
            "algorithm": self.algorithm.to_spec(),
            "domain": self.domain.to_dict(),
            "horizon": self.horizon,
            "constraints": self.constraints,
            "asked": self._asked,
        }
        file_format.write(path, "oco learner", _VERSION, content, self._arrays())

    def _arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the mutable arrays by their names in the file."""
        state = self._state
        return {"clock": state.completed, "point": state.point, "prices": state.prices, "squares": state.squares}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OnlineLearner:
        """Read a learner from a file.

        Args:
            path: A file that :meth:`save` wrote.

        Returns:
            The learner, as it was when it was saved.

        Raises:
            FileFormatError: If the file does not hold a valid learner.
        """
        content, stored = file_format.read(path, "oco learner", _VERSION)
        try:
            domain = domains.from_dict(content["domain"])
            horizon = whole(content["horizon"], "horizon", at_least=1, at_most=LARGEST_INT)
            constraints = whole(content["constraints"], "constraints", at_least=0, at_most=stored["prices"].size)
            learner = cls(from_spec(content["algorithm"]), domain, horizon, constraints)
            for name, array in learner._arrays().items():
                if stored[name].shape != array.shape or stored[name].dtype != array.dtype:
                    raise ValueError(f"array {name} has another shape or type than this learner needs")
                array[...] = stored[name]
            whole(learner.round, "clock", at_least=0, at_most=horizon)
            numbers = np.concatenate([learner._state.point, learner.prices, learner._state.squares])
            floats(numbers, "point, prices and squares", (None,))
            learner._asked = flag(content["asked"], "asked")
        except Exception as error:  # domains and algorithms raise errors of many kinds for invalid values
            raise FileFormatError(f"{path} holds a learner that is inconsistent: {error}") from error
        return learner

    def __repr__(self) -> str:
        return f"OnlineLearner({self.algorithm}, round {self.round} of {self.horizon})"
