"""The whole suite in one class.

Derive from it in a test module and give it a fixture `saver` that yields an empty saver:

    class TestMySaver(SaverConformance):
        @pytest.fixture
        def saver(self): ...

`pytest.register_assert_rewrite("waitpoint.testing.conformance")` before the import makes failures readable.
"""

from waitpoint.testing.conformance.commits import CommitConformance
from waitpoint.testing.conformance.cuts import CutConformance
from waitpoint.testing.conformance.keeping import KeepingConformance
from waitpoint.testing.conformance.listings import ListingConformance
from waitpoint.testing.conformance.moves import MoveConformance
from waitpoint.testing.conformance.reads import ReadConformance
from waitpoint.testing.conformance.records import RecordConformance
from waitpoint.testing.conformance.settles import SettleConformance


class SaverConformance(
    MoveConformance,
    CommitConformance,
    RecordConformance,
    SettleConformance,
    ReadConformance,
    ListingConformance,
    CutConformance,
    KeepingConformance,
):
    """Every promise of `waitpoint.checkpoint.base`, one test each."""
