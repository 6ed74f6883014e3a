"""``driftsack clock``: the clock that the service compares with its store when it starts."""

from __future__ import annotations

from contextlib import closing

from driftsack.cli.console import Commands, plain_errors, results
from driftsack.cli.extras import service_extra
from driftsack.cli.keys import opened
from driftsack.cli.serve import StoreOption, store_address

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


@clock.command()
def repair(store: StoreOption = None) -> None:
    """Let campaigns continue at the present time whose events lie in the future, because the clock was wrong.

    Without it, such a campaign is not refilled until that time. Stop the service first. Events keep their times, and
    budgets that were refilled too early are not taken back: charge the surplus with POST .../charges. Times that the
    policies have seen are moved back by whole weeks.

    Example: driftsack clock repair
    """
    with plain_errors(), service_extra():
        from driftsack.service.runtime.clock_check import repair_clock
        from driftsack.service.store import open_store

        with closing(open_store(store_address(store))) as found:
            ahead = repair_clock(found)
    for name, days in sorted(ahead.items()):
        results.print(f"{name} was {days:,.1f} days ahead; it continues at the present time.", markup=False)
    if not ahead:
        results.print("no campaign has events in the future.")
