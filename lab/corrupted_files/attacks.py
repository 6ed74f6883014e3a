"""Read corrupted files, and use the learners that can be loaded."""

from __future__ import annotations

import json
import operator
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.core.errors import FileFormatError
from driftsack.core.seeding import generator
from driftsack.policies.learner import Learner
from lab.corrupted_files.corruptions import CORRUPTIONS
from lab.corrupted_files.victims import victims
from tests.support.learner_files import file_of_started, go_on, opened

PART: Final = 2_500  # files that one process reads


class AttackReport(NamedTuple):
    """The outcome of an attack."""

    files: int  # read
    refused: int  # with a FileFormatError that names the file
    loaded: int  # with a learner that could continue
    failures: tuple[str, ...]  # other outcomes, with the number of the file


def attack(files: int, seed: int = 0, rounds: int = 6, first: int = 0) -> AttackReport:
    """Read corrupted files of learners and use those that can be loaded.

    Args:
        seed: Together with the number of a file, it determines the file.
        rounds: The number of rounds that a loaded learner must be able to play.
        first: The number of the first file.
    """
    originals = [file_of_started(policy, np.random.default_rng([seed, k])) for k, policy in enumerate(victims())]
    refused, loaded = 0, 0
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(directory) / "learner.npz"
        for number in range(first, first + files):
            rng = np.random.default_rng([seed, number])
            corrupt = CORRUPTIONS[int(rng.integers(len(CORRUPTIONS)))]
            path.write_bytes(corrupt(originals[number % len(originals)], rng))
            try:
                verdict = verdict_on(path, rounds)
            except Exception as error:  # any other error is a failure
                verdict = f"{type(error).__name__}: {error}"
            refused += verdict == "refused"
            loaded += verdict == "loaded"
            if verdict not in ("refused", "loaded"):
                failures.append(f"file {number}: {verdict:.300}")
    return AttackReport(files, refused, loaded, tuple(failures))


def attack_apart(
    files: int, seed: int = 0, processes: int = 1, progress: Callable[[int, int], None] | None = None
) -> AttackReport:
    """Run :func:`attack` in separate processes in which nothing is compiled.

    Args:
        seed: Together with the number of a file, it determines the file.
        processes: The number of concurrent processes.
        progress: Called with the number of files read and the number of failures.

    Returns:
        The report, in which a process that crashed counts as one failure.
    """
    total = AttackReport(0, 0, 0, ())
    with ThreadPoolExecutor(processes) as pool:
        firsts = range(0, files, PART)
        for found in pool.map(lambda first: _attack_part(min(PART, files - first), first, seed), firsts):
            total = AttackReport(*map(operator.add, total, found))
            if progress is not None:
                progress(total.files, len(total.failures))
    return total


def _attack_part(files: int, first: int, seed: int) -> AttackReport:
    """Attack with some of the files in a separate process."""
    call = f"attack({files}, {seed}, first={first})"
    code = f"import json; from lab.corrupted_files import attack; print(json.dumps({call}))"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        return AttackReport(
            files, 0, 0, (f"from file {first}, a process ended with {done.returncode}: {done.stderr[-300:]}",)
        )
    read, refused, loaded, failures = json.loads(done.stdout)
    return AttackReport(read, refused, loaded, tuple(failures))


def verdict_on(path: Path, rounds: int) -> str:
    """Read a file and return ``"refused"``, ``"loaded"`` or a description of the failure."""
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


def says_the_same(data: bytes, other: bytes) -> bool:
    """Whether two files hold the same values; the first one may omit settings that have defaults."""
    (content, arrays), (known, stored) = opened(data), opened(other)
    same = arrays.keys() == stored.keys() and all(arrays[name].tobytes() == stored[name].tobytes() for name in arrays)
    return same and all(_agrees(content[name], known[name]) for name in content)


def _agrees(value: Any, known: Any) -> bool:
    if isinstance(value, dict) and isinstance(known, dict):
        return all(name in known and _agrees(value[name], known[name]) for name in value)
    if isinstance(known, list):
        given = value if isinstance(value, list) else [value] * len(known)  # one number for all entries
        return len(given) == len(known) and all(map(_agrees, given, known))
    if isinstance(value, (int, float)) and isinstance(known, (int, float)):
        return float(value) == float(known)
    return bool(value == known)
