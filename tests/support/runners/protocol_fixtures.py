"""Fixtures: paired browsers, and actions in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from decisions.foundation.infra.ids import new_id
from decisions.identity.principals import Principal
from runners.invocation.event_loop import get_loop
from runners.paired_browser.dispatch import BrowserReply, SentAction, perform_in_browser
from runners.paired_browser.messaging import replies
from runners.paired_browser.pairing.tickets import create_ticket
from tests.support.runners.protocol_browser import ProtocolBrowser, pair_browser

PairBrowser = Callable[..., ProtocolBrowser]


@pytest.fixture
def paired_browser(web: str, principal: Principal) -> Iterator[ProtocolBrowser]:
    """Yield a connected browser of the local principal."""
    ticket = create_ticket(principal=principal)["ticket"]
    with pair_browser(web, ticket) as browser:
        yield browser


@pytest.fixture
def pair(web: str, principal: Principal) -> Iterator[PairBrowser]:
    """Pair browsers: `pair()` one of the local principal, `pair(other)` another's."""
    with ExitStack() as browsers:

        def make(owner: Principal = principal, **options: Any) -> ProtocolBrowser:
            ticket = create_ticket(principal=owner, **options)["ticket"]
            return browsers.enter_context(pair_browser(web, ticket))

        yield make


def action_for(client_id: str, **fields: Any) -> SentAction:
    """Return a click for a browser."""
    known = {"task_id": "task_1", "name": "browser_click", "timeout_ms": 5000}
    params = {"tabId": 1, "clickId": 3}
    action_id = new_id("act_")
    return SentAction(
        **{"action_id": action_id, "client_id": client_id, "params": params, **known, **fields}
    )


def perform(action: SentAction) -> BrowserReply:
    """Perform an action from the event loop of a worker."""
    return get_loop().submit(perform_in_browser(action)).result(60)


async def _close_reply_hub() -> None:
    await replies.get_reply_hub().close()


@pytest.fixture(scope="module", autouse=True)
def close_reply_hub() -> Iterator[None]:
    """Close the worker's subscription after the tests, before Redis stops."""
    yield
    if replies._hubs:
        get_loop().submit(_close_reply_hub()).result(60)
