"""Parts that policies are composed of: estimators, confidence radii, pacers, change detectors, nested states."""
