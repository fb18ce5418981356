"""Test the shared checks of the credentials of open connections."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from decisions.identity.principals import Principal
from runs.streaming import credential_checks
from runs.streaming.credential_checks import is_still_active


@pytest.mark.parametrize("first", ["old", "new"])
def test_connections_of_a_token_are_checked_for_the_users_that_they_opened_with(
    principal: Principal, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """One opened before the token's users changed, the other afterwards."""
    opened = {
        "old": replace(principal, acts_for=frozenset({"alice"})),
        "new": replace(principal, acts_for=frozenset({"bob"})),
    }
    monkeypatch.setattr(
        credential_checks, "is_credential_active", lambda caller: caller.acts_for == {"bob"}
    )

    async def check() -> dict[str, bool]:
        names = sorted(opened, key=lambda name: name != first)
        return {name: await is_still_active(opened[name]) for name in names}

    assert asyncio.run(check()) == {"old": False, "new": True}
