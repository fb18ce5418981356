"""The verification snippet of docs/webhooks.md accepts the webhooks that we send."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.webhooks.signing import headers, new_secret

DOCS = Path(__file__).parents[3] / "docs/webhooks.md"


@pytest.fixture
def is_genuine() -> Callable[..., bool]:
    """Call the snippet's function."""
    snippet = re.search(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert snippet
    names: dict[str, Any] = {}
    exec(snippet[1], names)  # noqa: S102  (what readers are told to run)
    function: Callable[..., bool] = names["is_genuine"]
    return function


def test_the_snippet_accepts_our_webhooks_and_nothing_else(is_genuine: Callable[..., bool]) -> None:
    secret, body = new_secret(), b'{"type":"run.failed"}'
    signed_headers = headers(secret, message_id="msg_1", timestamp=int(time.time()), body=body)
    assert is_genuine(signed_headers, body, secret)
    assert is_genuine(
        {**signed_headers, "webhook-signature": f"v1,x {signed_headers['webhook-signature']}"},
        body,
        secret,
    )
    assert not is_genuine(signed_headers, body + b" ", secret)
    assert not is_genuine(signed_headers, body, new_secret())
    assert not is_genuine({**signed_headers, "webhook-id": "msg_2"}, body, secret)


def test_the_snippet_refuses_an_old_message(is_genuine: Callable[..., bool]) -> None:
    secret = new_secret()
    old = headers(secret, message_id="msg_1", timestamp=int(time.time()) - 3600, body=b"{}")
    assert not is_genuine(old, b"{}", secret)
