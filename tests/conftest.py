"""Settings of every test: hypothesis draws the same examples each time, so that a red run stays red."""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
