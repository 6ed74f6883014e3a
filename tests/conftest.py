"""Settings of all tests: hypothesis draws the same examples in every run, so that failures are reproducible."""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
