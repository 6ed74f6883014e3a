"""Kernels without a domain: simplex, windows, detectors, projections, sampling; and how kernels are compiled."""
