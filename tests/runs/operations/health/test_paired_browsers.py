"""`manage.py doctor` says whether browsers are paired and connected."""

from __future__ import annotations

from datetime import UTC, datetime

from decisions.identity.principals import Principal
from runs.operations.health.checks import check_browsers
from tests.support.browser.paired_browser import pair


def test_doctor_says_how_to_pair_a_browser_and_how_many_are_connected(
    principal: Principal,
) -> None:
    found = check_browsers()
    assert (found.verdict, "plugin_ticket" in found.what) == ("ok", True)
    now = datetime.now(UTC)
    pair(principal, connection_id="plx_1", last_seen_at=now)
    pair(principal, last_seen_at=now)
    pair(principal, revoked_at=now)
    assert check_browsers().what == "2 paired, 1 connected now"
