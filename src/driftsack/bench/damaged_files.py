"""Damaged and crafted files: none may crash the process, and none that is impossible may be loaded.

Every file begins as that of a real learner of some policy and is then spoiled in one of these ways:

- *damaged*: bits are flipped, parts are cut out, moved or overwritten, or the file ends early. It must be refused,
  unless the content is the same.
- *crafted*: numbers, shapes, types, sizes and settings are changed by someone who knows the format and computes the
  digest again. It must be refused, or the learner must be able to continue: it is asked and told for some rounds, and
  saved and loaded again.

A refusal is a ``FileFormatError`` that names the file; any other error is a failure. Compiled kernels do not check
their indices, so an index out of range may go unnoticed. :func:`attack_apart` runs the same code without compilation,
where it raises an error, in a process of its own, whose end is a failure, too.
"""

from __future__ import annotations

import copy
import json
import operator
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core import file_format
from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.core.errors import BudgetExhaustedError, FileFormatError, HorizonReachedError
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
from driftsack.policies import learner_file
from driftsack.policies.adaptive import Adaptive
from driftsack.policies.always_arm import AlwaysArm
from driftsack.policies.bandit_over_bandit import BanditOverBandit
from driftsack.policies.detect_and_restart import DetectAndRestart
from driftsack.policies.discounted_ucb import DiscountedUCB
from driftsack.policies.disjoint_bwk import DisjointBwK
from driftsack.policies.dual_descent import DualDescent
from driftsack.policies.epsilon_greedy import EpsilonGreedy
from driftsack.policies.exp3_bwk import Exp3BwK
from driftsack.policies.lagrange_bwk import LagrangeBwK
from driftsack.policies.learner import Learner
from driftsack.policies.linear_bwk import LinearBwK
from driftsack.policies.master import Master
from driftsack.policies.naive_ucb import NaiveUCB
from driftsack.policies.plan_with_forecast import PlanWithForecast
from driftsack.policies.policy import Policy
from driftsack.policies.price_controller import PriceController
from driftsack.policies.primal_dual_bwk import PrimalDualBwK
from driftsack.policies.recent_means_lp import RecentMeansLP
from driftsack.policies.sliding_window_ucb import SlidingWindowUCB
from driftsack.policies.spending_plan import SpendingPlan
from driftsack.policies.square_cb_bwk import SquareCBwK
from driftsack.policies.thompson_bwk import ThompsonBwK
from driftsack.policies.uniform_random import UniformRandom

PART: Final = 2_500  # files that one process reads
HORIZON: Final = 60
NUMBERS: Final = (0, 1, -1, 2, 3, 7, 255, 10**5, 10**9, 2**31, 2**40, 2**62, 2**63 - 1, -(2**31), -(2**63))
SETTINGS: Final[tuple[Any, ...]] = (
    *NUMBERS,
    10**30,
    1e308,
    -0.5,
    float("nan"),
    float("inf"),
    None,
    True,
    "",
    "x" * 99,
    [],
    {},
    [[1]],
    [1e9],
)

Content = dict[str, Any]
Arrays = dict[str, Any]


class Report(NamedTuple):
    """What became of the files.

    Attributes:
        files: How many were read.
        refused: How many were refused with a ``FileFormatError`` that names the file.
        loaded: How many were loaded, and the learner could continue.
        failures: What went wrong otherwise, with the number of the file.
    """

    files: int
    refused: int
    loaded: int
    failures: tuple[str, ...]


def attack(files: int, seed: int = 0, rounds: int = 6, first: int = 0) -> Report:
    """Read spoiled files of learners and use those that can be loaded.

    Args:
        files: The number of files.
        seed: The seed of everything that is random.
        rounds: The number of rounds that a learner that was loaded must be able to continue for.
        first: The number of the first file.

    Returns:
        What became of them.
    """
    originals = [started(policy, np.random.default_rng([seed, k])) for k, policy in enumerate(victims())]
    refused, loaded = 0, 0
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "learner.npz"
        for number in range(first, first + files):
            rng = np.random.default_rng([seed, number])
            spoil = SPOILERS[int(rng.integers(len(SPOILERS)))]
            path.write_bytes(spoil(originals[number % len(originals)], rng))
            try:
                verdict = verdict_on(path, rounds)
            except Exception as error:  # every other error is a finding
                verdict = f"{type(error).__name__}: {error}"
            refused += verdict == "refused"
            loaded += verdict == "loaded"
            if verdict not in ("refused", "loaded"):
                failures.append(f"file {number}: {verdict:.300}")
    return Report(files, refused, loaded, tuple(failures))


def attack_apart(
    files: int, seed: int = 0, processes: int = 1, progress: Callable[[int, int], None] | None = None
) -> Report:
    """Do the same as :func:`attack` in processes of their own in which nothing is compiled.

    Args:
        files: The number of files.
        seed: The seed of everything that is random.
        processes: The number of processes at a time.
        progress: Called with the number of files that were read and of failures.

    Returns:
        What became of them; files of a process that did not survive are one failure.
    """
    total = Report(0, 0, 0, ())
    with ThreadPoolExecutor(processes) as pool:
        firsts = range(0, files, PART)
        for found in pool.map(lambda first: _attack_part(min(PART, files - first), first, seed), firsts):
            total = Report(*map(operator.add, total, found))
            if progress is not None:
                progress(total.files, len(total.failures))
    return total


def _attack_part(files: int, first: int, seed: int) -> Report:
    """Read some of the files in a process of its own."""
    call = f"attack({files}, {seed}, first={first})"
    code = f"import json; from driftsack.bench.damaged_files import attack; print(json.dumps({call}))"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)  # noqa: S603
    if done.returncode != 0:
        return Report(
            files, 0, 0, (f"from file {first}, a process ended with {done.returncode}: {done.stderr[-300:]}",)
        )
    read, refused, loaded, failures = json.loads(done.stdout)
    return Report(read, refused, loaded, tuple(failures))


def victims() -> list[Policy]:
    """A policy for each kind of state."""
    flat = Instance.stationary([0.5, 0.4, 0.3], [[0.5, 0.2, 0.4]] * 2, HORIZON, [20.0, 25.0])
    return [
        SlidingWindowUCB(windows=(7, 11), scale=0.2, radius="bernstein", first_pulls=2),
        NaiveUCB(scale=0.1),
        Adaptive(),
        Adaptive(pacing="fixed"),
        ThompsonBwK(windows=9),
        ThompsonBwK(budget_rule="two-speed"),
        DiscountedUCB(scale=0.1, first_pulls=1),
        BanditOverBandit(block=20),
        Master(),
        DetectAndRestart(SlidingWindowUCB(windows=9, scale=0.1)),
        DetectAndRestart(detector="cusum"),
        SpendingPlan(NaiveUCB(scale=0.1), (0.0, 0.3, 1.0)),
        PlanWithForecast(flat, windows=8),
        RecentMeansLP(pulls=4),
        PriceController(),
        EpsilonGreedy(),
        LagrangeBwK(),
        PrimalDualBwK(),
        DualDescent(),
        Exp3BwK(),
        UniformRandom(),
        AlwaysArm(1),
        LinearBwK(),
        DisjointBwK(),
        SquareCBwK(),
    ]


def started(policy: Policy, rng: Generator) -> bytes:
    """The file of a learner in the middle of its rounds, with pending decisions."""
    budget = [20.0] if isinstance(policy, Exp3BwK) else [20.0, 25.0]
    features = 2 if policy.needs_context else 0
    learner = Learner(policy, Problem(horizon=HORIZON, arms=3, budget=budget, cost_max=1.0, features=features), seed=1)
    go_on(learner, 25, rng)
    for _ in range(3):
        learner.ask(context=some_context(learner, rng))
    content, arrays = opened(learner.to_bytes())
    content["lineage"] = "0" * len(content["lineage"])  # random otherwise; the same seed gives the same files
    for name in arrays:
        if name.endswith("epoch"):
            arrays[name][:] = 0
    return file_format.encode(learner_file.KIND, learner_file.LAYOUT, content, arrays)


def go_on(learner: Learner, rounds: int, rng: Generator) -> None:
    """Tell what is pending, and ask and tell for some rounds, while the budgets last."""
    for decision in learner.pending:
        learner.tell(decision, float(rng.random()), 0.6 * rng.random(learner.problem.resources))
    caps = None if learner.problem.bounded else [1.0] * learner.problem.resources
    for _ in range(rounds):
        try:
            decision = learner.ask(caps=caps, context=some_context(learner, rng))
        except (BudgetExhaustedError, HorizonReachedError):
            return
        if decision.arm != SKIP:
            learner.tell(decision, float(rng.random()), 0.6 * rng.random(learner.problem.resources))


def some_context(learner: Learner, rng: Generator) -> Floats | None:
    """The features of a request, if requests have some."""
    return rng.standard_normal(learner.problem.features) if learner.problem.features else None


def verdict_on(path: Path, rounds: int) -> str:
    """Read a file: ``"refused"``, ``"loaded"``, or what is wrong."""
    try:
        learner = Learner.load(path, read_only=True)
    except FileFormatError as error:
        return "refused" if str(path) in str(error) else f"the error does not name the file: {error}"
    if learner.state_hash() != Learner.from_bytes(learner.to_bytes()).state_hash():
        return "a copy of the learner differs from it"
    if not says_the_same(path.read_bytes(), learner.to_bytes()):
        return "the learner is not the one in the file"
    if not (learner.remaining <= learner.budget).all():
        return f"{learner.remaining} remains of a budget of {learner.budget}"
    go_on(learner, rounds, generator(0))
    Learner.from_bytes(learner.to_bytes())
    return "loaded"


def opened(data: bytes) -> tuple[Content, Arrays]:
    """Content and arrays of a file."""
    return file_format.decode(data, learner_file.KIND, learner_file.LAYOUT, "the file")


@lru_cache(maxsize=64)
def _opened_once(data: bytes) -> tuple[Content, Arrays]:
    return opened(data)


def says_the_same(data: bytes, other: bytes) -> bool:
    """Whether two files hold the same numbers; settings that the first one omits have their defaults."""
    (content, arrays), (known, stored) = opened(data), opened(other)
    same = arrays.keys() == stored.keys() and all(arrays[name].tobytes() == stored[name].tobytes() for name in arrays)
    return same and all(_agrees(content[name], known[name]) for name in content)


def _agrees(value: Any, known: Any) -> bool:
    if isinstance(value, dict) and isinstance(known, dict):
        return all(name in known and _agrees(value[name], known[name]) for name in value)
    if isinstance(known, list):
        given = value if isinstance(value, list) else [value] * len(known)  # one number for all
        return len(given) == len(known) and all(map(_agrees, given, known))
    if isinstance(value, (int, float)) and isinstance(known, (int, float)):
        return float(value) == float(known)
    return bool(value == known)


def flip_bits(data: bytes, rng: Generator) -> bytes:
    """Flip a few bits."""
    spoiled = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        spoiled[int(rng.integers(len(spoiled)))] ^= 1 << int(rng.integers(8))
    return bytes(spoiled)


def splice(data: bytes, rng: Generator) -> bytes:
    """Cut out, repeat, move or overwrite a part, or end the file early."""
    first, last, place = sorted(int(k) for k in rng.integers(len(data), size=3))
    part = data[first:last]
    ways = (
        data[:first] + data[last:],
        data[:place] + part + data[place:],
        data[:last] + part + data[last:],
        data[:first] + bytes(last - first) + data[last:],
        data[:first] + rng.bytes(last - first) + data[last:],
        data[:last],
    )
    return ways[int(rng.integers(len(ways)))]


def overwrite_word(data: bytes, rng: Generator) -> bytes:
    """Overwrite a few bytes, often those of a length in the directory at the end, by an extreme number."""
    spoiled = bytearray(data)
    place = int(rng.integers(max(len(data) - 2_000, 0) if rng.random() < 0.5 else 0, len(data) - 8))  # noqa: PLR2004
    width = int(rng.choice([2, 4, 8]))
    value = NUMBERS[int(rng.integers(len(NUMBERS)))] % 2 ** (8 * width)
    spoiled[place : place + width] = value.to_bytes(width, "little")
    return bytes(spoiled)


def crafted(data: bytes, change: Callable[[Content, Arrays, Generator], None], rng: Generator) -> bytes:
    """Change content or arrays, and compute the digest again."""
    content, arrays = copy.deepcopy(_opened_once(data))
    change(content, arrays, rng)
    return file_format.encode(learner_file.KIND, learner_file.LAYOUT, content, arrays)


def any_name(arrays: Arrays, rng: Generator) -> str:
    """The name of an array that is not empty."""
    names = sorted(name for name, array in arrays.items() if array.size)
    return names[int(rng.integers(len(names)))]


def change_numbers(content: Content, arrays: Arrays, rng: Generator) -> None:  # noqa: ARG001
    """Change entries of an array to extreme numbers, or add a little to them."""
    array = arrays[any_name(arrays, rng)]
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(array.size))
        if array.dtype == np.bool_:
            array.view(np.uint8).flat[place] = int(rng.integers(256))
        elif rng.random() < 0.3:  # noqa: PLR2004
            array.flat[place] += int(rng.integers(-3, 4))
        elif array.dtype.kind == "i":
            array.flat[place] = NUMBERS[int(rng.integers(len(NUMBERS)))]
        else:
            extreme = (np.nan, np.inf, -np.inf, -1.0, 1e308, 5e-324, 1e18, -1e-9, 0.0)
            array.flat[place] = extreme[int(rng.integers(len(extreme)))]


def change_integers(content: Content, arrays: Arrays, rng: Generator) -> None:  # noqa: ARG001
    """Change an entry of an integer array, which may be an index or a size."""
    names = sorted(name for name, array in arrays.items() if array.size and array.dtype.kind == "i")
    if names:
        array = arrays[names[int(rng.integers(len(names)))]]
        near, far = int(rng.integers(-2, 12)), NUMBERS[int(rng.integers(len(NUMBERS)))]
        array.flat[int(rng.integers(array.size))] = near if rng.random() < 0.5 else far  # noqa: PLR2004


def change_shape(content: Content, arrays: Arrays, rng: Generator) -> None:  # noqa: ARG001
    """Give an array another shape or type, remove it, or add one."""
    name = any_name(arrays, rng)
    array = arrays[name]
    others = (
        lambda: np.resize(array, array.size + 1),
        lambda: array.reshape(-1)[:-1],
        lambda: array[None],
        lambda: array.astype(np.float32),
        lambda: array.astype(">f8"),
        lambda: array.astype(np.int64 if array.dtype != np.int64 else np.float64),
        lambda: np.resize(array, 100_000),
        lambda: np.array("text"),
    )
    kind = int(rng.integers(len(others) + 2))
    if kind == len(others):
        del arrays[name]
    elif kind > len(others):
        arrays[f"{name}.more"] = array
    else:
        arrays[name] = others[kind]()


def change_setting(content: Content, arrays: Arrays, rng: Generator) -> None:  # noqa: ARG001
    """Change a value in the header, however deep."""
    place: Any = content
    key: Any = None
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[int(rng.integers(len(keys)))]
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.1:  # noqa: PLR2004
            break
        place = inner
    if rng.random() < 0.1 and isinstance(place, dict):  # noqa: PLR2004
        del place[key]
    else:
        place[key] = copy.deepcopy(SETTINGS[int(rng.integers(len(SETTINGS)))])


def change_much(content: Content, arrays: Arrays, rng: Generator) -> None:
    """Make several changes at once, such as a size and the arrays that go with it."""
    for _ in range(int(rng.integers(2, 5))):
        change = (change_numbers, change_integers, change_setting)[int(rng.integers(3))]
        change(content, arrays, rng)


SPOILERS: Final[tuple[Callable[[bytes, Generator], bytes], ...]] = (
    flip_bits,
    splice,
    overwrite_word,
    lambda data, rng: crafted(data, change_numbers, rng),
    lambda data, rng: crafted(data, change_integers, rng),
    lambda data, rng: crafted(data, change_shape, rng),
    lambda data, rng: crafted(data, change_setting, rng),
    lambda data, rng: crafted(data, change_much, rng),
)
