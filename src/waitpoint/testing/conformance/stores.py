"""What every store must do.

Derive from it in a test module and give it a fixture `new_store`, a function that takes `index` and `ttl` and returns an
empty store:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def new_store(self): ...
"""

from __future__ import annotations

from waitpoint.testing.conformance.store_items import ItemConformance
from waitpoint.testing.conformance.store_searches import SearchConformance
from waitpoint.testing.conformance.store_times import TimeConformance


class StoreConformance(ItemConformance, SearchConformance, TimeConformance):
    """Every promise of `waitpoint.store.base`, one test each."""
