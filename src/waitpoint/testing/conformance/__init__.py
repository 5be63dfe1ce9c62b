"""What every checkpoint saver, store and cache must do, as tests that any of them can run."""

from waitpoint.testing.conformance.caches import CacheConformance
from waitpoint.testing.conformance.stores import StoreConformance
from waitpoint.testing.conformance.suite import SaverConformance

__all__ = ["CacheConformance", "SaverConformance", "StoreConformance"]
