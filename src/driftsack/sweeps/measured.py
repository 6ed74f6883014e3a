"""Quantities of an instance that a spec may refer to as ``measured:<name>``: the only list of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from driftsack.benchmarks import fixed_distribution, lp_dynamic
from driftsack.core.instance import Instance
from driftsack.measures import variation
from driftsack.sweeps.forecasts import forecast, spending


class Quantity(NamedTuple):
    """A quantity that can be measured of an instance."""

    measure: Callable[[Instance], Any]  # computes the value for an instance
    stand_in: Any  # a valid value, with which a policy's settings can be checked before there is an instance


def _variation_budgets(instance: Instance) -> tuple[float, float]:
    """(V1, V2)."""
    measured = variation(instance)
    return measured.v1, measured.v2


QUANTITIES: Final[Mapping[str, Quantity]] = {
    "variation": Quantity(_variation_budgets, (1.0, 1.0)),
    "opt_fd": Quantity(lambda instance: float(fixed_distribution(instance).value), 1.0),
    "lp_dynamic": Quantity(lambda instance: float(lp_dynamic(instance).value), 1.0),
    "forecast": Quantity(
        lambda instance: forecast(instance).to_dict(),
        Instance.stationary([0.5], [[0.5]], horizon=1, budget=1.0).to_dict(),
    ),
    "spending": Quantity(lambda instance: spending(forecast(instance)), (0.0, 1.0)),
}
STAND_INS: Final[Mapping[str, Any]] = {name: quantity.stand_in for name, quantity in QUANTITIES.items()}


class Measurements(Mapping[str, Any]):
    """All quantities of one instance by name, each computed when it is first read.

    >>> from driftsack.instances import example_2
    >>> measured = Measurements(example_2(horizon=1_000))
    >>> measured["variation"], "opt_fd" in measured, "luck" in measured
    ((0.5, 1.0), True, False)
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            self._values[name] = QUANTITIES[name].measure(self._instance)
        return self._values[name]

    def __contains__(self, name: object) -> bool:  # the default would compute the value
        return name in QUANTITIES

    def __iter__(self) -> Iterator[str]:
        return iter(QUANTITIES)

    def __len__(self) -> int:
        return len(QUANTITIES)
