"""Cells: one instance, one policy, one seed and one block of trials, the smallest unit that a sweep runs and keeps.

A cell's key is a hash of everything that decides its result: the content of the instance, the policy's settings with
the measured quantities filled in, the seed, the trials, the stop rule, the delay of outcomes and the maxima that the
policy is told, the names under which it is shown, and the code that simulates it. A key therefore always names
the same result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any, Final, NamedTuple, Self

import polars as pl

from driftsack.core.instance import Instance
from driftsack.core.stamp import code_digest
from driftsack.policies import from_spec
from driftsack.simulation import Feedback, simulate
from driftsack.simulation.feedback import loosened
from driftsack.sweeps.measured import Measurements
from driftsack.sweeps.spec import InstanceSpec, Spec

LIBRARIES: Final = ("numpy", "numba")
SCHEMA: Final = pl.Schema(
    {
        "instance": pl.String(),
        "policy": pl.String(),
        "seed": pl.Int64(),
        "trial": pl.Int64(),
        "horizon": pl.Int64(),
        "noise": pl.String(),
        "optimum": pl.Float64(),
        "reward": pl.Float64(),
        "stopping_time": pl.Int64(),
        "spent": pl.List(pl.Float64()),
        "overshoot": pl.List(pl.Float64()),
        "pulls": pl.List(pl.Int64()),
        "pulls_first_half": pl.List(pl.Int64()),
        "budget": pl.List(pl.Float64()),
        "lp_rescues": pl.Int64(),
        "curve": pl.List(pl.Float64()),
        "settings": pl.String(),
        "cell": pl.String(),
    }
)


@dataclass(frozen=True)
class Cell:
    """Everything that decides one piece of a sweep's result."""

    instance: str  # name of the instance
    content: str  # hash of the instance
    policy: str  # name of the policy
    settings: str  # the policy's spec as JSON
    seed: int  # seed of the trials
    first: int  # number of the first trial
    count: int  # how many trials
    safe: bool  # whether an arm is offered only if its maximum cost fits into the budget
    delay: int = 0  # as in :class:`~driftsack.simulation.Feedback`
    loose: float = 1.0  # as in :class:`~driftsack.simulation.Feedback`

    @cached_property
    def key(self) -> str:
        """The name of the cell in a store."""
        return hashlib.sha256(canonical({**asdict(self), "code": code_stamp()}).encode()).hexdigest()[:32]


class NamedInstance:
    """An instance with its name, its hash and the quantities that can be measured of it, each computed when needed.

    The quantities are measured with the maxima that policies are told.
    """

    def __init__(self, spec: InstanceSpec, loose: float = 1.0) -> None:
        self.label = spec.label
        self.instance = spec.build()
        self.measured = Measurements(loosened(self.instance, loose))

    @cached_property
    def content(self) -> str:
        """A hash of the instance: equal instances have equal hashes, whatever their names."""
        digest = hashlib.sha256()
        world = self.instance
        digest.update(canonical({**world.problem.to_dict(), "noise": world.noise}).encode())
        for array in (world.rewards, world.costs, world.phase):
            digest.update(f"{array.shape}{array.dtype}".encode() + array.tobytes())
        return digest.hexdigest()


class Job(NamedTuple):
    """A cell, its instance and its optimum, as an engine simulates it."""

    cell: Cell
    instance: Instance
    optimum: float  # the value of LP-Dynamic on the instance


class CellResult(NamedTuple):
    """The result of a cell: its trials, or an error."""

    cell: Cell
    trials: pl.DataFrame | None  # one row per trial in the columns of :data:`SCHEMA`; None if the cell failed
    error: str = ""  # the type and the message of the error; empty if there was none


class FailedCell(NamedTuple):
    """A cell that could not be simulated.

    >>> print(FailedCell("example_1", "LagrangeBwK", 0, 0, 5, "OutOfRangeError: benchmark must be above 0, got 0."))
    LagrangeBwK on example_1, seed 0, trials 0 to 4: OutOfRangeError: benchmark must be above 0, got 0.
    """

    instance: str  # name of the instance
    policy: str  # name of the policy
    seed: int  # seed of the trials
    first_trial: int  # number of the first trial
    trials: int  # how many trials
    error: str  # the type and the message of the error

    @classmethod
    def of(cls, cell: Cell, error: str) -> Self:
        """Make the record of a cell and its error."""
        return cls(cell.instance, cell.policy, cell.seed, cell.first, cell.count, error)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, and a label of the cell under ``cell``."""
        return {"cell": _cell_label(self), **self._asdict()}

    def __str__(self) -> str:
        return f"{_cell_label(self)}: {self.error}"


def _cell_label(cell: FailedCell) -> str:
    """Format a cell for display."""
    last_trial = cell.first_trial + cell.trials - 1
    return f"{cell.policy} on {cell.instance}, seed {cell.seed}, trials {cell.first_trial} to {last_trial}"


def list_cells(spec: Spec) -> list[tuple[Cell, NamedInstance]]:
    """List every cell of a spec in order, each with its instance."""
    return [pair for part in spec.instances for pair in _cells_of_instance(NamedInstance(part, spec.loose), spec)]


def _cells_of_instance(named: NamedInstance, spec: Spec) -> Iterator[tuple[Cell, NamedInstance]]:
    """Every cell of a spec with this instance."""
    for policy in spec.policies:
        settings = canonical(policy.resolve(named.measured))
        for seed in spec.seeds:
            for first, count in spec.blocks(named.instance.horizon):
                yield (
                    Cell(
                        instance=named.label,
                        content=named.content,
                        policy=policy.label,
                        settings=settings,
                        seed=seed,
                        first=first,
                        count=count,
                        safe=spec.safe,
                        delay=spec.delay,
                        loose=spec.loose,
                    ),
                    named,
                )


def try_cell(job: Job) -> CellResult:
    """Simulate a cell; an error becomes part of the result, so that the other cells continue."""
    try:
        return CellResult(job.cell, simulate_cell(job))
    except Exception as error:
        return CellResult(job.cell, None, f"{type(error).__name__}: {error}")


def simulate_cell(job: Job) -> pl.DataFrame:
    """Simulate the trials of a cell, one row per trial in the columns of :data:`SCHEMA`."""
    cell, instance = job.cell, job.instance
    policy = from_spec(json.loads(cell.settings))
    run = simulate(
        instance,
        policy,
        range(cell.first, cell.first + cell.count),
        cell.seed,
        threads=1,
        safe=cell.safe,
        feedback=Feedback(cell.delay, cell.loose),
    )
    # Columns that are the same in every row, then those of each trial.
    constant = {
        "instance": cell.instance,
        "policy": cell.policy,
        "seed": cell.seed,
        "horizon": instance.horizon,
        "noise": instance.noise,
        "optimum": job.optimum,
        "budget": list(instance.problem.budget),
        "settings": cell.settings,
        "cell": cell.key,
    }
    by_trial = {
        "trial": list(range(cell.first, cell.first + cell.count)),
        "reward": run.reward,
        "stopping_time": run.stopping_time,
        "spent": pl.Series(run.spent).arr.to_list(),
        "overshoot": pl.Series(run.overshoot).arr.to_list(),
        "pulls": pl.Series(run.pulls).arr.to_list(),
        "pulls_first_half": pl.Series(run.pulls_first_half).arr.to_list(),
        "lp_rescues": run.lp_rescues,
        "curve": pl.Series(run.curve).arr.to_list(),
    }
    repeated = {name: [value] * cell.count for name, value in constant.items()}
    return pl.DataFrame({name: (by_trial | repeated)[name] for name in SCHEMA}, schema=SCHEMA)


def canonical(content: Any) -> str:
    """Serialise to JSON with sorted keys and no spaces, so that equal contents give equal strings."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


@cache
def code_stamp() -> str:
    """A digest of the code that decides results and of the versions of its numerical libraries."""
    versions = canonical({name: version(name) for name in LIBRARIES})
    return hashlib.sha256(f"{versions}{code_digest()}".encode()).hexdigest()
