"""Campaigns as pure functions of their events: no I/O, no clock."""
