"""What every test shares: how hard hypothesis works."""

from hypothesis import settings

settings.register_profile("fast", max_examples=60, deadline=None)
settings.register_profile("proof", max_examples=3000, deadline=None)
settings.load_profile("fast")
