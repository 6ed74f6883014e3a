"""Realistic problems of twelve trades, each with two hand-written rules and informed ceilings."""
