"""Play random commands against the reference ledger for many steps, on SQLite and on PostgreSQL.

The state machine is that of tests/service/runtime/test_state_machine.py, which has the short form and the faults that
it detects.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from hypothesis import Phase, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from tests.service.runtime.test_state_machine import Machine
from tests.support.local_postgres import LocalPostgres

SETTINGS = settings(
    max_examples=200, stateful_step_count=60, deadline=None, phases=[Phase.generate], database=None, derandomize=False
)


def play(name: str, address: str, steps: int) -> None:
    """Play on one store; the first difference is raised with the commands that lead to it."""
    begin, count = time.monotonic(), 0

    class Counted(Machine):
        """Counts its steps."""

        @invariant()
        def count(self) -> None:
            """Count a step."""
            nonlocal count
            count += 1

    Counted.address = address
    while count < steps:
        run_state_machine_as_test(Counted, settings=SETTINGS)
        print(f"{name}: {count:,} steps, no difference, {time.monotonic() - begin:.0f} s", flush=True)


def play_on_both_stores(steps: int) -> None:
    """Play on SQLite, then on a new PostgreSQL server."""
    play("SQLite", "", steps)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        server = LocalPostgres(Path(directory))
        try:
            play("PostgreSQL", server.new_database(), steps)
        finally:
            server.remove()
