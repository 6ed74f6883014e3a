"""Building blocks of policies: estimators, confidence radii, pacers, change detectors and nested states."""
