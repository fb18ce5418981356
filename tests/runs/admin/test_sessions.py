"""Browser sessions in the admin site: displayed, and closed by operators with the permission."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.browser_sessions import save_state
from runners.models import BrowserSession
from runs.models import Run
from runs.sessions.services import create_session

LIST = "/admin/runners/browsersession/"


@pytest.fixture
def session(principal: Principal) -> BrowserSession:
    """Create a session that is logged in for some hours."""
    session_id = create_session(principal=principal, name="shop")["sessionId"]
    BrowserSession.objects.update(worker_id="w1")
    until = datetime.now(UTC) + timedelta(hours=5, minutes=1)
    cookie = {"name": "sessionid", "value": "c00kie-value", "expires": until.timestamp()}
    save_state(
        session_id, worker_id="w1", storage={"cookies": [cookie]}, urls=["http://a/?k=s3cret"]
    )
    return BrowserSession.objects.get()


def test_pages_show_the_status_and_never_the_state(
    superuser_client: Client, session: BrowserSession, make_run: Callable[..., Run]
) -> None:
    run = make_run(status="running", session_id=session.id, owns_session=False)
    for page in (LIST, f"{LIST}{session.id}/change/"):
        text = superuser_client.get(page).content.decode()
        assert "shop" in text
        assert "in 5 h" in text
        assert run.id in text
        assert "c00kie" not in text
        assert "s3cret" not in text


def test_closing_uses_the_service(superuser_client: Client, session: BrowserSession) -> None:
    response = superuser_client.post(f"{LIST}{session.id}/close/", follow=True)
    assert "is closed" in response.content.decode()
    session.refresh_from_db()
    assert (session.sealed_state, session.closed_at is None) == (None, False)
    assert AuditEntry.objects.get(action="session.closed").actor == "admin:boss"


def test_a_session_in_use_stays_open_and_its_run_is_named(
    superuser_client: Client, session: BrowserSession, make_run: Callable[..., Run]
) -> None:
    run = make_run(status="running", session_id=session.id, owns_session=False)
    text = superuser_client.post(f"{LIST}{session.id}/close/", follow=True).content.decode()
    assert f"Not closed: The run {run.id} uses this session" in text
    assert BrowserSession.objects.filter(closed_at__isnull=True).exists()


def test_only_operators_who_may_change_sessions_close_them(
    staff_client: Callable[..., Client], session: BrowserSession
) -> None:
    reader = staff_client("runners.view_browsersession")
    assert f"{session.id}/close/" not in reader.get(f"{LIST}{session.id}/change/").content.decode()
    assert reader.post(f"{LIST}{session.id}/close/").status_code == 403
    assert reader.get(f"{LIST}{session.id}/close/").status_code == 405


def test_a_run_with_credentials_offers_no_retry(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    plain, secret = make_run(status="failed"), make_run(status="failed", holds_secrets=True)
    shown = [
        f"/runs/run/{run.id}/retry/"
        in superuser_client.get(f"/admin/runs/run/{run.id}/change/").content.decode()
        for run in (plain, secret)
    ]
    assert shown == [True, False]
