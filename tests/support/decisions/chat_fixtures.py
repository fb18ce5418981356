"""Fixture: send chat messages to the service of POST /chat."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from decisions.chat.services import chat
from decisions.identity.principals import Principal
from tests.support.decisions.continuity import KNOWN_SLOTS, SendChat


@pytest.fixture
def send_chat(principal: Principal) -> SendChat:
    """Send a message as user alice, with the slots of an execution: `send_chat("…", slots={})`."""
    count = iter(range(1000))

    def send(message: str, **changed: Any) -> dict[str, Any]:
        call = {
            "user_id": "alice",
            "message": message,
            "idempotency_key": f"k{next(count)}",
            "slots": KNOWN_SLOTS,
            **changed,
        }
        return asyncio.run(chat(principal=principal, call=call))

    return send
