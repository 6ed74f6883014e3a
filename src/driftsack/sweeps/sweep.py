"""Run a sweep: play the cells that a store does not hold yet, and keep each as soon as it is done."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from driftsack.sweeps.cells import Job, expand
from driftsack.sweeps.engines import Engine, LocalEngine
from driftsack.sweeps.spec import Spec
from driftsack.sweeps.store import Store


class Progress(NamedTuple):
    """How far a sweep has come, in trials."""

    done: int
    total: int
    last: str  # the cell that ended last, or what went wrong with it


class Swept(NamedTuple):
    """What a sweep did."""

    cells: int
    played: list[str]  # keys of the cells that were played now
    kept: int  # cells that were there already
    failed: list[dict[str, str]]  # cell and error
    set_aside: list[str]
    seconds: float


def run(
    spec: Spec,
    folder: str | os.PathLike[str],
    engine: Engine | None = None,
    progress: Callable[[Progress], None] | None = None,
    said: Callable[[str], None] | None = None,
) -> Swept:
    """Play what is missing. Killed or interrupted, it leaves a store from which the same call goes on.

    ``progress`` is told how many trials are done; ``said`` hears about files that were set aside and cells that failed.
    """
    tell = said or (lambda _: None)
    begun = time.perf_counter()
    store = Store(folder)
    store.open()
    plan = expand(spec)
    survey = store.survey(cell.key for cell, _ in plan)
    for sentence in survey.set_aside:
        tell(sentence)
    store.write_plan([cell.key for cell, _ in plan], {"spec": spec.model_dump(mode="json", exclude_none=True)})
    wanted = [(cell, world) for cell, world in plan if cell.key not in survey.kept]
    total = sum(cell.count for cell, _ in plan)
    done = total - sum(cell.count for cell, _ in wanted)
    jobs = (Job(cell, world.instance, world.lp_dynamic) for cell, world in wanted)
    played: list[str] = []
    failed: list[dict[str, str]] = []
    for outcome in (engine or LocalEngine()).run(jobs):
        if outcome.frame is None:
            failed.append({"cell": str(outcome.cell), "error": outcome.error})
            tell(outcome.error)
        else:
            store.write(outcome.cell.key, outcome.frame)
            played.append(outcome.cell.key)
        done += outcome.cell.count
        if progress is not None:
            progress(Progress(done, total, str(outcome.cell)))
    return Swept(len(plan), played, len(survey.kept), failed, survey.set_aside, time.perf_counter() - begun)
