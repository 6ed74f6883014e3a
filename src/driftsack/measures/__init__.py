"""Layer 2: measures of non-stationarity."""

from driftsack.measures.local import Variation, variation

__all__ = ["Variation", "variation"]
