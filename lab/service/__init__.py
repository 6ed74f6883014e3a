"""Trials of the service: how fast it is, and whether it keeps its promises while things break."""
