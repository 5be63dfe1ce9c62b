"""What only a server refuses: callers it does not know, who may not do this, or who ask too much."""

from __future__ import annotations

from waitpoint.errors import WaitpointError


class RefusedError(WaitpointError):
    """A request that is refused for who sent it, or how; nothing was done."""

    code = "refused"


class UnauthorizedError(RefusedError):
    """The request bears no key or token, or one that is not valid; send one that is."""

    code = "unauthorized"


class ForbiddenError(RefusedError):
    """The caller is known, and may not do this; use a key with the scope that the text names."""

    code = "forbidden"


class TooLargeError(RefusedError):
    """The request's body is larger than the server takes; send less, or raise the limit."""

    code = "too_large"


class TooManyError(RefusedError):
    """The caller sent more requests than the server takes in a minute; wait as long as the text says."""

    code = "too_many"

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after
