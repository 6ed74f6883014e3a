"""Cells: one world, one policy, one seed, one block of trials; the smallest piece of a sweep that is run and kept.

A cell's key is a hash of all that decides its result: the world's content, the policy's settings with the world's
numbers put in, the seed, the trials, the stop rule, the names under which it is shown, and the code that plays. What
one key names can therefore be kept for ever and never be mistaken for something else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any, Final, NamedTuple

import polars as pl

from driftsack.benchmarks import fixed_distribution, lp_dynamic
from driftsack.core.instance import Instance
from driftsack.core.stamp import code_digest
from driftsack.measures import variation
from driftsack.policies import from_spec
from driftsack.simulation import simulate
from driftsack.sweeps import forecasts as foretold
from driftsack.sweeps.spec import STAND_INS, Spec, WorldSpec

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
        "fallbacks": pl.Int64(),
        "curve": pl.List(pl.Float64()),
        "settings": pl.String(),
        "cell": pl.String(),
    }
)


@dataclass(frozen=True)
class Cell:
    """Everything that decides one piece of the result."""

    instance: str  # name
    content: str  # hash of the instance
    policy: str  # name
    settings: str  # the policy's spec as JSON
    seed: int
    first: int  # trial
    count: int
    safe: bool

    @cached_property
    def key(self) -> str:
        """The name of the cell in a store."""
        return hashlib.sha256(canonical({**asdict(self), "code": code_stamp()}).encode()).hexdigest()[:32]

    def __str__(self) -> str:
        return (
            f"{self.policy} on {self.instance}, seed {self.seed}, trials {self.first} to {self.first + self.count - 1}"
        )


class World:
    """An instance with its name, its hash, and what may be measured on it; each is computed when first asked for."""

    def __init__(self, spec: WorldSpec) -> None:
        self.label = spec.label
        self.instance = spec.build()

    @cached_property
    def content(self) -> str:
        """A hash of the instance: equal worlds have equal ones."""
        digest = hashlib.sha256()
        world = self.instance
        digest.update(canonical({**world.problem.to_dict(), "noise": world.noise}).encode())
        for array in (world.rewards, world.costs, world.phase):
            digest.update(f"{array.shape}{array.dtype}".encode() + array.tobytes())
        return digest.hexdigest()

    @cached_property
    def variation(self) -> tuple[float, float]:
        """(V1, V2)."""
        moves = variation(self.instance)
        return moves.v1, moves.v2

    @cached_property
    def opt_fd(self) -> float:
        """What the best fixed mix earns until a budget is gone (fluid)."""
        return float(fixed_distribution(self.instance).value)

    @cached_property
    def lp_dynamic(self) -> float:
        """What the best plan earns."""
        return float(lp_dynamic(self.instance).value)

    @cached_property
    def forecast(self) -> dict[str, Any]:
        """The world in ten periods, foretold."""
        return foretold.forecast(self.instance).to_dict()

    @cached_property
    def spending(self) -> Any:
        """How the best plan of that forecast spends."""
        return foretold.spending(foretold.forecast(self.instance))


class Measured(dict[str, Any]):
    """A world's numbers by name, each measured when asked for."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def __contains__(self, name: object) -> bool:
        return name in STAND_INS

    def __missing__(self, name: str) -> Any:
        return getattr(self.world, name)


class Job(NamedTuple):
    """A cell with what is needed to play it."""

    cell: Cell
    instance: Instance
    optimum: float


class Outcome(NamedTuple):
    """What became of a cell: its table, or what went wrong."""

    cell: Cell
    frame: pl.DataFrame | None
    error: str = ""


def expand(spec: Spec) -> list[tuple[Cell, World]]:
    """Every cell of a spec, in order, each with its world."""
    return [pair for part in spec.instances for pair in _of_world(World(part), spec)]


def _of_world(world: World, spec: Spec) -> Iterator[tuple[Cell, World]]:
    for policy in spec.policies:
        settings = canonical(policy.resolve(Measured(world)))
        for seed in spec.seeds:
            for first, count in spec.blocks(world.instance.horizon):
                cell = Cell(world.label, world.content, policy.label, settings, seed, first, count, spec.safe)
                yield cell, world


def attempt(job: Job) -> Outcome:
    """Play a cell; whatever goes wrong becomes a sentence that names it, so that the others go on."""
    try:
        return Outcome(job.cell, play(job))
    except Exception as error:
        return Outcome(job.cell, None, f"{job.cell}: {type(error).__name__}: {error}")


def play(job: Job) -> pl.DataFrame:
    """The trials of a cell, one row each, in the columns of :data:`SCHEMA`."""
    cell, instance = job.cell, job.instance
    policy = from_spec(json.loads(cell.settings))
    run = simulate(instance, policy, cell.count, cell.seed, threads=1, safe=cell.safe, first=cell.first)
    same = {
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
    each = {
        "trial": list(range(cell.first, cell.first + cell.count)),
        "reward": run.reward,
        "stopping_time": run.stopping_time,
        "spent": pl.Series(run.spent).arr.to_list(),
        "overshoot": pl.Series(run.overshoot).arr.to_list(),
        "pulls": pl.Series(run.pulls).arr.to_list(),
        "pulls_first_half": pl.Series(run.pulls_first_half).arr.to_list(),
        "fallbacks": run.fallbacks,
        "curve": pl.Series(run.curve).arr.to_list(),
    }
    repeated = {name: [value] * cell.count for name, value in same.items()}
    return pl.DataFrame({name: (each | repeated)[name] for name in SCHEMA}, schema=SCHEMA)


def canonical(content: Any) -> str:
    """JSON in one spelling."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


@cache
def code_stamp() -> str:
    """A digest of the code that decides results and of the versions of what it computes with."""
    versions = canonical({name: version(name) for name in LIBRARIES})
    return hashlib.sha256(f"{versions}{code_digest()}".encode()).hexdigest()
