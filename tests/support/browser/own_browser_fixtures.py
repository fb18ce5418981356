"""Fixtures for runs in a person's own browser."""

from __future__ import annotations

import pytest

from decisions.identity.principals import Principal
from runners.invocation import own_browser, own_tabs
from tests.support.browser.own_browser import ScriptedBrowser, pair


@pytest.fixture
def browser(principal: Principal, monkeypatch: pytest.MonkeyPatch) -> ScriptedBrowser:
    """Pair a browser of the principal, which answers actions as the extension does."""
    scripted = ScriptedBrowser(pair(principal).id)
    monkeypatch.setattr(own_browser, "perform_on_client", scripted.perform)
    monkeypatch.setattr(own_tabs, "perform_on_client", scripted.perform)
    monkeypatch.setattr(own_browser, "collect_reply", scripted.collect)
    return scripted
