"""Webhooks: when a run has ended, the address it named is told. A delivery is tried until it succeeds or was refused often.

Which are due is in the ledger, so a crash loses none; one may come twice, so receivers go by `run_id`.

Whoever may start runs can have this server send a POST to any address it reaches, inside its network too. Addresses of
the link-local range, where clouds keep their credentials, are refused; `hosts` allows only the names it lists, and should
be set wherever callers are not trusted like operators. Redirects are not followed, and answers are not shown to callers.
"""

from __future__ import annotations

import asyncio
import fnmatch
import ipaddress
import logging
import socket
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import urlsplit

import httpx
from fastapi import Depends, Request

from waitpoint import clock
from waitpoint.checkpoint.base import offload
from waitpoint.errors import UsageError
from waitpoint.hosting import encoding
from waitpoint.hosting.host import Host
from waitpoint.hosting.results import result_of
from waitpoint.ledger.base import RunRow

_log = logging.getLogger("waitpoint.webhooks")

LOOK_SECONDS = 1.0
TIMEOUT_SECONDS = 10.0
CLAIM_SECONDS = 60.0  # how long another server leaves a delivery to the one that tries it
PAUSES_SECONDS = (2.0, 15.0, 120.0, 900.0)  # after the first failure, the second, ...


class Policy:
    """Which addresses may be told. `hosts` are names, or patterns like `*.example.com`; None allows all."""

    def __init__(self, hosts: Sequence[str] | None = None) -> None:
        self.hosts = None if hosts is None else [host.lower() for host in hosts]

    def check(self, url: str) -> None:
        """Raise `UsageError` for an address that may not be told."""
        try:
            parts = urlsplit(url)
            host, _ = (parts.hostname or "").lower(), parts.port
        except ValueError:
            raise UsageError("The webhook is no address; give an http or https URL") from None
        if parts.scheme not in ("http", "https") or not host or parts.username is not None:
            raise UsageError(
                "The webhook is not to be told; give an http or https URL with a host, and no user name in it"
            )
        if self.hosts is not None and not any(fnmatch.fnmatchcase(host, pattern) for pattern in self.hosts):
            raise UsageError(
                f"The webhook's host '{host}' is not among those that this server may tell; ask its operator"
            )
        if self.hosts is None and _is_link_local(host):
            raise UsageError(f"The webhook's host '{host}' is a link-local address, which this server does not tell")

    def check_resolved(self, url: str) -> None:
        """Look the host up and refuse a name that stands for a link-local address. Raises `UsageError` and `OSError`."""
        parts = urlsplit(url)
        if self.hosts is not None or parts.hostname is None:
            return
        for found in socket.getaddrinfo(parts.hostname, parts.port or 0, type=socket.SOCK_STREAM):
            if _is_link_local(str(found[4][0])):
                raise UsageError(f"The webhook's host '{parts.hostname}' stands for a link-local address")


class Webhooks:
    """Tells addresses of runs that have ended."""

    def __init__(self, host: Host, hosts: Sequence[str] | None = None) -> None:
        self.policy = Policy(hosts)
        self._host = host
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to deliver."""
        self._loop = asyncio.create_task(self._delivering())

    async def stop(self) -> None:
        """Stop; what is not delivered yet is delivered after the next start."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)

    async def _delivering(self) -> None:
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, follow_redirects=False, trust_env=False) as client:
            while True:
                try:
                    await self.deliver(client)
                except Exception:  # noqa: BLE001 - the store may be away; the next look tries again
                    _log.exception("webhooks could not be looked for")
                await asyncio.sleep(LOOK_SECONDS)

    async def deliver(self, client: httpx.AsyncClient) -> None:
        """Try all deliveries that are due."""
        ledger = self._host.ledger
        due: list[RunRow] = await offload(ledger, ledger.due_hooks, clock.now())
        await asyncio.gather(*(self._try(client, run) for run in due))

    async def _try(self, client: httpx.AsyncClient, run: RunRow) -> None:
        ledger = self._host.ledger
        until = clock.now() + CLAIM_SECONDS
        if not await offload(ledger, ledger.change_hook, run, until):
            return  # another server tries it
        run.hook_at = until
        told = {"tries": run.outcome.get("webhook", {}).get("tries", 0) + 1, "tried_at": clock.iso(clock.now())}
        try:
            status = await self._post(client, run)
            told["status"] = status
            is_told = 200 <= status < 300
        except Exception as error:  # noqa: BLE001 - its graph may be gone too; the others are told all the same
            told["error"] = type(error).__name__
            is_told = False
        again_at = None
        if not is_told and told["tries"] <= len(PAUSES_SECONDS):
            again_at = clock.now() + PAUSES_SECONDS[told["tries"] - 1]
        if is_told:
            told["sent_at"] = told["tried_at"]
        else:
            _log.warning("webhook not delivered", extra={"run_id": run.id, "tries": told["tries"]})
        await offload(ledger, ledger.change_hook, run, again_at, told)

    async def _post(self, client: httpx.AsyncClient, run: RunRow) -> int:
        url = str(run.request["webhook"])
        self.policy.check(url)  # the list may be another than when the run was accepted
        await asyncio.to_thread(self.policy.check_resolved, url)
        body = encoding.dumps(await self._body(run))
        answer = await client.post(url, content=body, headers={"Content-Type": "application/json"})
        return answer.status_code

    async def _body(self, run: RunRow) -> dict[str, Any]:
        host = self._host
        result = await offload(host.ledger, result_of, run, host.graphs[run.graph], host.ledger, host.saver)
        thread = await offload(host.ledger, host.ledger.thread, run.thread_id)
        begun = await offload(host.ledger, host.ledger.last_entry, run.id, "metadata")
        return {
            "run_id": run.id,
            "thread_id": run.thread_id,
            "assistant_id": run.assistant_id,
            "status": run.status,
            "metadata": run.metadata,
            "multitask_strategy": run.strategy,
            "created_at": clock.iso(run.created_at),
            "updated_at": clock.iso(run.updated_at),
            "run_started_at": None if begun is None else clock.iso(begun.at),
            "run_ended_at": clock.iso(run.updated_at),
            "webhook_sent_at": clock.iso(clock.now()),
            "values": result.values,
            "error": result.error,
            "interrupts": result.interrupts,
            "thread_status": None if thread is None else thread.status,
        }


def webhooks_of(request: Request) -> Webhooks:
    """Return the webhooks of the application."""
    found: Webhooks = request.app.state.webhooks
    return found


TheWebhooks = Annotated[Webhooks, Depends(webhooks_of)]


def _is_link_local(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_link_local
