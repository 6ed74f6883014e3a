"""Play random commands against the reference ledger for many steps: ``python tools/long_machine.py [STEPS]``.

The state machine of tests/test_service_machine.py, which has the short form and the faults that it finds, on SQLite and
on PostgreSQL, 100,000 steps each unless another number is given. A difference is printed with the commands that lead to
it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from hypothesis import Phase, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

sys.path.insert(0, str(Path(__file__).parents[1]))

from driftsack.service.trials.local_postgres import LocalPostgres
from tests.test_service_machine import Machine

STEPS = 100_000
SETTINGS = settings(
    max_examples=200, stateful_step_count=60, deadline=None, phases=[Phase.generate], database=None, derandomize=False
)


def play(name: str, address: str, steps: int) -> None:
    """Play until there were enough steps; raises at the first difference."""
    begin, count = time.monotonic(), 0

    class Counted(Machine):
        """Counts its steps."""

        @invariant()
        def count(self) -> None:
            """One more."""
            nonlocal count
            count += 1

    Counted.address = address
    while count < steps:
        run_state_machine_as_test(Counted, settings=SETTINGS)
        sys.stdout.write(f"{name}: {count:,} steps, no difference, {time.monotonic() - begin:.0f} s\n")
        sys.stdout.flush()


def main(steps: int) -> None:
    """Play on both stores."""
    play("SQLite", "", steps)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server = LocalPostgres(Path(folder))
        try:
            play("PostgreSQL", server.new_database(), steps)
        finally:
            server.remove()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STEPS)
