"""Real data as full-information tables, each read from a package that must be installed."""

from driftsack.datasets.flights import flights, flights_world

__all__ = ["flights", "flights_world"]
