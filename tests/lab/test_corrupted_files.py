"""Corrupted and malicious files of learners: none is loaded wrongly, and missing checks are detected."""

from __future__ import annotations

import os
import subprocess
import sys

from lab.corrupted_files import attack_apart


def test_no_damaged_or_malicious_file_is_loaded_wrongly() -> None:
    """``python -m lab corrupted-files`` does the same at length."""
    report = attack_apart(1_000, seed=11)
    assert report.failures == ()
    assert report.refused + report.loaded == report.files == 1_000
    assert report.refused > 400
    assert report.loaded > 20


def test_the_attack_finds_missing_checks() -> None:
    code = """
import driftsack.policies.learner.file as file
from lab.corrupted_files import attacks
from driftsack.game import desk_arrays
from driftsack.policies import AlwaysArm, NaiveUCB
attacks.CORRUPTIONS = attacks.CORRUPTIONS[3:5]
attacks.victims = lambda: [NaiveUCB(scale=0.1), AlwaysArm(1)]
for module, name in ((file, "check_state"), (desk_arrays, "check_array"), (file, "check_ledgers")):
    check = getattr(module, name)
    setattr(module, name, lambda *_: None)
    print(len(attacks.attack(120).failures))
    setattr(module, name, check)
print(len(attacks.attack(120).failures))
"""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
    *without, complete = (int(count) for count in done.stdout.split())
    assert min(without) > 0 == complete
    assert len(without) == 3
