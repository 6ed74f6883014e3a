"""Measures of non-stationarity: how much the means of an instance vary over time."""

from driftsack.measures.price_interval import PriceInterval
from driftsack.measures.variation import Centre, Variation, variation

__all__ = ["Centre", "PriceInterval", "Variation", "variation"]
