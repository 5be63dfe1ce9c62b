"""What every checkpoint saver must do, as tests that any saver can run."""

from waitpoint.testing.conformance.suite import SaverConformance

__all__ = ["SaverConformance"]
