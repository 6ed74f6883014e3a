"""Layer 4: real data as full-information tables. Nothing is copied in: each needs the package that its file names."""

from driftsack.datasets.flights import flights, flights_world

__all__ = ["flights", "flights_world"]
