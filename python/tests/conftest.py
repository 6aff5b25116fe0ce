"""Property tests draw the same examples in every run, and none is judged by a clock."""

from hypothesis import settings

settings.register_profile("finetti", derandomize=True, deadline=None, database=None)
settings.load_profile("finetti")
