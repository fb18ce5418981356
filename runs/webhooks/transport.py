"""Send a message to the address of a webhook, which a user chose."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Mapping
from functools import partial

from runners.errors import ToolFailed
from runners.network.address import (
    TrustLevel,
    check_address,
    embedded_ipv4,
    is_allowed,
    is_blocked_name,
    is_public,
)
from runners.network.allowlist import Address, is_metadata
from runners.network.egress import EgressPolicy, is_allowed_for_remote
from runners.network.http_client import (
    CONNECTION_ERRORS,
    ResponseTooLarge,
    WireUsage,
    connection_error_text,
    create_pool,
    send_request,
)
from runs.webhooks.deliveries import WebhookResponse

TIMEOUT_S = 10.0
RESPONSE_MAX_BYTES = 80 * 1024  # the body is read and discarded
BODY_S = 1.0
# What local callers may also reach: this machine and private networks, without metadata services.
_LOCAL = [
    ipaddress.ip_network(text)
    for text in (
        "127.0.0.0/8",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::1/128",
        "fc00::/7",
    )
]


async def post(
    url: str, *, trust: TrustLevel, headers: Mapping[str, str], body: bytes
) -> WebhookResponse:
    """Send the body and return the response's status, or the error if there is no response."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            status = await _exchange(url, trust, headers, body)
    except TimeoutError:
        return WebhookResponse(None, f"no answer within {TIMEOUT_S:.0f} s")
    except ToolFailed as refusal:
        return WebhookResponse(None, refusal.message)
    except CONNECTION_ERRORS as error:
        return WebhookResponse(None, connection_error_text(error))
    except ResponseTooLarge:
        return WebhookResponse(None, "The response's headers are too large.")
    error_text = "" if 200 <= status < 300 else f"answered {status}"
    return WebhookResponse(status, error_text)


async def _exchange(url: str, trust: TrustLevel, headers: Mapping[str, str], body: bytes) -> int:
    checked = check_address(url, trust)
    sent = {
        "User-Agent": "Continuity-Webhooks/1.0",
        "Content-Type": "application/json",
        "Connection": "close",
        **headers,
    }
    usage = WireUsage(RESPONSE_MAX_BYTES)
    async with (
        create_pool(_policy(trust)) as pool,
        send_request(pool, "POST", checked, headers=sent, content=body, usage=usage) as response,
    ):
        with contextlib.suppress(TimeoutError, ResponseTooLarge, *CONNECTION_ERRORS):
            async with asyncio.timeout(BODY_S):
                async for _ in response.aiter_stream():
                    pass
        return response.status


def _policy(trust: TrustLevel) -> EgressPolicy:
    return EgressPolicy(
        permits=partial(may_reach, trust=trust),
        forbids_name=lambda name: trust != "local" and is_blocked_name(name),
    )


def may_reach(address: Address, port: int, trust: TrustLevel) -> bool:
    """Return whether a webhook of this trust level may be sent to this address.

    Webhooks of remote callers follow the rule for the pages that remote callers may open. Local
    callers may also name private networks and this machine, on any port, for programs of theirs.
    """
    if trust != "local":
        return is_allowed_for_remote(address, port)
    if is_public(address) or is_allowed(address, port):
        return True
    if is_metadata(address):
        return False
    if any(address in net for net in _LOCAL):
        return True
    inner = embedded_ipv4(address)
    return bool(inner) and all(any(one in net for net in _LOCAL) for one in inner)
