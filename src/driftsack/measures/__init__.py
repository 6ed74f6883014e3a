"""Measures of non-stationarity."""

from driftsack.measures.variation import Centre, Variation, variation

__all__ = ["Centre", "Variation", "variation"]
