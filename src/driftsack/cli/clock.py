"""``driftsack clock``: the clock that the service compares with its store when it starts."""

from __future__ import annotations

from driftsack.cli.console import Commands, results
from driftsack.cli.keys import opened
from driftsack.cli.serve import StoreOption

clock = Commands(no_args_is_help=True, help="Manage the clock that the refills of the service follow.")


@clock.callback()
def group() -> None:
    """Manage the clock that the refills of the service follow."""


@clock.command()
def accept(store: StoreOption = None) -> None:
    """Say that the system's clock is right although the last event of the store is long ago.

    The service refuses to start with a clock that is more than 45 days ahead of its last event.

    Example: driftsack clock accept
    """
    with opened(store) as found:
        from driftsack.service.runtime.clock_check import accept_clock

        accept_clock(found)
    results.print("the clock is accepted; start the service now.")
