"""Lists, counts and decisions that follow the server in a real Chromium, over one connection."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.async_api import Page

from decisions.authorization import confirmations
from decisions.authorization.confirmations import open_confirmation
from decisions.identity.principals import Principal
from decisions.models import Decision
from runs.admin import change_stream
from runs.models import Run
from runs.submission.cancel import cancel_run
from tests.support.admin.live_pages import save_screenshot
from tests.support.admin.visitor import Visitor

ASKS = {"type": "answer", "question": "Which account?", "expiresAt": 2_000_000_000_000}
STREAMING = "html[data-stream=open]"


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the open streams: the list has how many there are and how many there were at most."""
    counts, stream = [0, 0], change_stream.stream_changes

    async def counted(*args: Any) -> AsyncGenerator[bytes, None]:
        counts[0] += 1
        counts[1] = max(counts)
        try:
            async for part in stream(*args):
                yield part
        finally:
            counts[0] -= 1

    monkeypatch.setattr(change_stream, "stream_changes", counted)
    return counts


def open_decision(principal: Principal) -> Decision:
    """Create a decision on a tool call that waits for a person."""
    decision = Decision.objects.create(
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        principal_id=principal.id,
        kind="tool",
        mode="confirm",
        tool="write_to_file",
        subject_digest="d",
        created_at=datetime.now(UTC),
    )
    return open_confirmation(decision).confirmation.decision


def open_tab(visitor: Visitor, path: str) -> Page:
    """Open a page in another tab of the same browser."""
    page: Page = visitor.do(visitor.page.context.new_page())
    visitor.do(page.goto(visitor.address + path))
    visitor.do(page.wait_for_selector(STREAMING))
    return page


@pytest.mark.slow
def test_tabs_share_a_connection_and_lists_follow_it(
    visitor: Visitor, submit: Callable[..., str], streams: list[int]
) -> None:
    first = submit()
    visitor.open("/admin/runs/run/")
    visitor.wait_for(STREAMING)
    audit_log = open_tab(visitor, "/admin/decisions/auditentry/")
    second = submit()
    visitor.wait_for(f"#result_list a[href*='{second}']")
    visitor.do(audit_log.wait_for_selector(f"#result_list a[href*='{second}']"))
    assert streams == [1, 1]
    visitor.do(visitor.page.close())  # the tab that had the connection
    third = submit()
    visitor.do(audit_log.wait_for_selector(f"#result_list a[href*='{third}']"))
    assert streams == [1, 1]
    assert first != second


@pytest.mark.slow
def test_a_selection_stays_and_holds_new_rows_back(
    visitor: Visitor, submit: Callable[..., str], principal: Principal
) -> None:
    chosen = submit()
    visitor.open("/admin/runs/run/")
    visitor.wait_for(STREAMING)
    box = f"input.action-select[value='{chosen}']"
    visitor.do(visitor.page.check(box))
    new = submit()
    cancel_run(principal=principal, run_id=chosen)
    visitor.wait_for(".cty-added >> text=1 new row")
    visitor.wait_for(f"tbody:has({box}) >> text=canceled")
    save_screenshot(visitor, "list-held")
    assert visitor.do(visitor.page.is_checked(box))
    visitor.do(visitor.page.uncheck(box))
    visitor.wait_for(f"#result_list a[href*='{new}']")
    visitor.do(visitor.page.check("#action-toggle"))
    assert visitor.do(visitor.page.locator(".action-select:checked").count()) == 2


def test_what_waits_is_counted_in_the_navigation_and_in_the_title(
    visitor: Visitor, make_run: Callable[..., Run], principal: Principal
) -> None:
    visitor.open("/admin/runs/task/")
    visitor.wait_for(STREAMING)
    make_run(status="running", ready=False, waiting_for=ASKS)
    decision = open_decision(principal)
    visitor.wait_for("[data-waiting]:has-text('2')")
    assert visitor.do(visitor.page.title()).startswith("(2) ")
    confirmations.decide(answer="refuse", decision_id=decision.pk, by="admin:x", how="admin")
    visitor.wait_for("[data-waiting]:has-text('1')")
    assert visitor.do(visitor.page.title()).startswith("(1) ")


@pytest.mark.slow
def test_a_notification_of_the_browser_names_what_waits(
    visitor: Visitor, make_run: Callable[..., Run]
) -> None:
    visitor.do(visitor.page.context.grant_permissions(["notifications"]))
    visitor.do(visitor.page.add_init_script(RECORD_NOTIFICATIONS))
    visitor.open("/admin/decisions/decision/?status=waiting")
    visitor.wait_for(STREAMING)
    visitor.click("button:has-text('Notify me in this browser')")
    visitor.wait_for("button:has-text('Notifications on')")
    make_run(status="running", ready=False, waiting_for=ASKS)
    visitor.do(visitor.page.wait_for_function("window.notified.length === 1"))
    assert visitor.do(visitor.page.evaluate("window.notified")) == ["Which account?"]


RECORD_NOTIFICATIONS = """
window.notified = [];
window.Notification = class {
  static permission = "granted";
  static requestPermission = async () => "granted";
  constructor(title, options) { window.notified.push(options.body); } };"""


@pytest.mark.slow
def test_an_open_decision_shows_that_somewhere_else_it_was_decided(
    visitor: Visitor, principal: Principal
) -> None:
    decision = open_decision(principal)
    visitor.open(f"/admin/decisions/decision/{decision.pk}/change/")
    visitor.wait_for("button:has-text('Refuse')")
    confirmations.decide(answer="refuse", decision_id=decision.pk, by="admin:x", how="admin")
    visitor.wait_for("[data-part=head] >> text=refused")
    visitor.do(visitor.page.wait_for_selector("button:has-text('Refuse')", state="detached"))
