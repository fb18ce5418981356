"""Fixtures for runs in a paired browser."""

from __future__ import annotations

import pytest

from decisions.identity.principals import Principal
from runners.invocation import paired_browser, paired_tabs
from tests.support.browser.paired_browser import ScriptedBrowser, pair


@pytest.fixture
def browser(principal: Principal, monkeypatch: pytest.MonkeyPatch) -> ScriptedBrowser:
    """Pair a browser of the principal, which answers actions as the extension does."""
    scripted = ScriptedBrowser(pair(principal).id)
    monkeypatch.setattr(paired_browser, "perform_in_browser", scripted.perform)
    monkeypatch.setattr(paired_tabs, "perform_in_browser", scripted.perform)
    monkeypatch.setattr(paired_browser, "collect_reply", scripted.collect)
    return scripted
