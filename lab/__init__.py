"""Measurements of driftsack itself: speed, soak, faults, corrupted files, rivals. ``python -m lab`` lists them."""
