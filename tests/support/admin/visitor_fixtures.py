"""Fixture: a user who is signed in to the admin site."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import override_settings

from decisions.identity.one_time_login import create_login_path
from decisions.identity.principals import Principal
from runners.invocation.event_loop import LoopThread
from tests.support.admin.visitor import Visitor, open_visitor


@pytest.fixture
def visitor(principal: Principal, web: str, browser_loop: LoopThread) -> Iterator[Visitor]:
    """Yield a user who signed in with a one-time link."""
    with open_visitor(browser_loop, web) as person:
        with override_settings(ONE_TIME_LOGIN=True):
            person.sign_in(create_login_path())
        yield person
