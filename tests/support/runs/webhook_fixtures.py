"""Fixtures: a webhook and its receiver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from decisions.identity.principals import Principal
from runs.webhooks import services
from tests.support.runs.webhook_receiver import Receiver, run_receiver

MakeWebhook = Callable[..., dict[str, Any]]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as receiver:
        yield receiver


@pytest.fixture
def make_webhook(principal: Principal, receiver: Receiver) -> MakeWebhook:
    """Create a webhook with the receiver's URL: `make_webhook(every_run=False)`."""

    def make(**fields: Any) -> dict[str, Any]:
        return services.create_webhook(principal=principal, **{"url": receiver.url, **fields})

    return make
