"""Domain-independent kernels (simplex, windows, detectors, projections, sampling) and their compilation."""
