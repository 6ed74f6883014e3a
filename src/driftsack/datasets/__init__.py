"""Real data as full-information tables, read from optional packages."""

from driftsack.datasets.flights import flights, flights_world

__all__ = ["flights", "flights_world"]
