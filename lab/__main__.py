"""``python -m lab NAME``: run one of the programs that measure driftsack or try to break it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from driftsack.cli.console import CommandLine
from lab.commands import advice, comparisons, floors, learners, reserves, scenarios, service, speed, theory, trials

app = CommandLine(
    name="python -m lab",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
PROGRAMS: Final[dict[str, dict[str, Callable[..., Any]]]] = {
    "Speed": {"speed": speed.speed, "versions": speed.versions},
    "Policies": {
        "adaptive": comparisons.adaptive,
        "contexts": comparisons.contexts,
        "floors": floors.floors,
        "routing": comparisons.routing,
        "scenarios": scenarios.scenarios,
    },
    "Theory": {"mutants": theory.mutants, "powers": theory.powers, "companion": theory.companion},
    "Learners": {
        "soak": learners.soak,
        "corrupted-files": learners.corrupted_files,
        "reserves": reserves.reserves,
        "advice-intervals": advice.advice_intervals,
    },
    "Service": {
        "serve": service.serve,
        "context-speed": service.context_speed,
        "labels": service.labels,
        "routing-service": service.routing_service,
        "faults": service.faults,
        "endurance": service.endurance,
        "backup": service.backup,
        "many-campaigns": service.many_campaigns,
        "neighbours": service.neighbours,
        "state-machine": trials.state_machine,
        "requests": trials.requests,
        "context-requests": trials.context_requests,
        "orphans": trials.orphans,
        "page": trials.page,
        "alarm-level": trials.alarm_level,
        "context-alarms": service.context_alarms,
    },
    "Gateways and installation": {
        "proxy-cost": trials.proxy_cost,
        "hostile-upstreams": trials.hostile_upstreams,
        "prompt-routing": trials.prompt_routing,
        "litellm": trials.litellm,
        "newcomer": trials.newcomer,
    },
}
"""The programs by name, under the headings of the help page."""

for heading, programs in PROGRAMS.items():
    for name, program in programs.items():
        app.command(name, rich_help_panel=heading)(program)


@app.callback()
def main() -> None:
    """Measure driftsack, or try to break it. Run from the top of the repository, in the development environment.

    Each program prints what it found and exits with 1 if a bar is missed or a promise is broken.

    Example: python -m lab speed --quick
    """
    os.environ.setdefault("DRIFTSACK_COMPILE", "first")  # what is measured is machine code


if __name__ == "__main__":
    app()
