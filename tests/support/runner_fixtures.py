"""Fixtures of the tests that call runners on this machine.

A test module names this one in `pytest_plugins`, and `open_loopback` in its `pytestmark`.
"""

from __future__ import annotations

import pytest


@pytest.fixture
def open_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the operator open this machine to servers' requests."""
    monkeypatch.setenv("CONTINUITY_EGRESS_ALLOW", "127.0.0.1,::1")
