"""The version of this package, which the build reads from here, and of the Python that it needs."""

import sys

__version__ = "0.1.0"

# Older ones have no `asyncio.TaskGroup` and do not hand context variables to tasks: questions would be lost there.
# This module is imported before all others, so it must parse on any Python 3.
if sys.version_info < (3, 11):  # noqa: UP036 - a checkout, a copied folder or a lenient installer gets here
    raise ImportError(
        "waitpoint needs Python 3.11 or newer, and this is Python %d.%d - on older ones a question asked in an async node "  # noqa: UP031
        "would be lost - run it with a newer Python" % sys.version_info[:2]
    )
