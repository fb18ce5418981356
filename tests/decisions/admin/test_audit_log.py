"""The audit log in the admin site: read, filtered, linked, never written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from decisions.admin.audit import occurring_tools
from decisions.audit.query import filter_by_tool, list_audit_entries
from decisions.audit.record import AuditEvent, record
from decisions.audit.sealer import Sealer
from decisions.audit.verify_bundle import check_bundle
from decisions.foundation.infra.ids import new_id
from decisions.identity.principals import Principal, create_token
from decisions.models import AuditEntry, AuditSeal, Token
from runs.models import Run
from tests.support.admin.downloads import downloaded_bytes
from tests.support.audit.audit_attacks import attack

LIST = "/admin/decisions/auditentry/"


@pytest.fixture
def record_event(principal: Principal) -> Callable[..., AuditEntry]:
    """Record an audit event: `record_event("run.started", "run", run.id, actor="reaper")`."""

    def make(
        action: str, resource_type: str, resource_id: str, actor: str = "local", **metadata: Any
    ) -> AuditEntry:
        workspace = principal.tenant_id, principal.workspace_id
        record(AuditEvent(action, actor, resource_type, resource_id, *workspace, metadata))
        return AuditEntry.objects.latest("id")

    return make


def ids_in(client: Client, query: str) -> list[int]:
    """Return the entries that the list displays for a query."""
    return [entry.id for entry in client.get(LIST + query).context["cl"].result_list]


def test_entries_are_found_by_their_fields(
    superuser_client: Client, record_event: Callable[..., AuditEntry]
) -> None:
    lost = record_event("run.worker_lost", "run", "run_1", actor="reaper")
    refused = record_event("run.refused", "template", "login_keep_session", actor="token:tok_1")
    for query in ("?q=run_1", "?q=run.worker_lost", "?q=reaper", "?action=run.worker_lost"):
        assert ids_in(superuser_client, query) == [lost.id], query
    assert ids_in(superuser_client, "?outcome=refused") == [refused.id]
    assert ids_in(superuser_client, "?q=token:tok_1") == [refused.id]


SQLITE_ROWS = [
    "created_at = 'tomorrow'",
    "created_at = '2026-02-30 10:00:00'",
    "created_at = '12026-01-01 10:00:00'",
    "created_at = '2026-02-03 24:00:00'",
    "created_at = '2026-02-03 10:00:00+99:99'",
    "created_at = '2026-02-03 10:00:00' || CAST(x'00ff' AS TEXT)",
    "created_at = CAST(x'ff41' AS TEXT)",
    "actor = CAST(x'ff41' AS TEXT)",
    "action = CAST(x'ff41' AS TEXT)",
    "metadata = CAST(x'7b2261223a22ff227d' AS TEXT)",
    "mac = x'ff41'",
]
POSTGRESQL_ROWS = ["created_at = '12026-01-01 10:00:00+00'", "created_at = '-infinity'"]


@pytest.mark.parametrize(
    "change", POSTGRESQL_ROWS if connection.vendor == "postgresql" else SQLITE_ROWS
)
def test_a_row_that_cannot_be_read_is_shown_as_unreadable(
    superuser_client: Client,
    principal: Principal,
    record_event: Callable[..., AuditEntry],
    change: str,
) -> None:
    genuine, forged = record_event("run.started", "run", "r"), record_event("run.ended", "run", "r")
    attack(f"UPDATE {{rows}} SET {change} WHERE id = %(id)s", id=forged.id)  # noqa: S608
    page = list_audit_entries(principal=principal)["items"]
    assert [row["id"] for row in page[:2]] == [forged.id, genuine.id]
    json.dumps(page, allow_nan=False)
    assert page[1]["createdAt"] is not None
    assert ids_in(superuser_client, "")[:2] == [forged.id, genuine.id]
    shown = superuser_client.get(f"{LIST}{forged.id}/change/").content.decode()
    assert "invalid: the row was changed" in shown
    assert ("unreadable" in shown) == change.startswith(("created_at", "metadata"))
    lines = downloaded_bytes(superuser_client.post(f"{LIST}export/")).splitlines()
    assert len(lines) == 1 + AuditEntry.objects.count() + 1


def test_rows_about_a_tool_are_found_by_its_name(
    superuser_client: Client, record_event: Callable[..., AuditEntry]
) -> None:
    in_run = record_event("tool.called", "run", "run_1", tool="bash.exec")
    direct = record_event("tool.called", "tool", "bash.exec", tool="bash.exec", callId="call_1")
    record_event("tool.called", "run", "run_2", tool="echo")
    record_event("run.started", "run", "run_2")
    for query in ("?q=bash.exec", "?tool=bash.exec", "?tool=bash.exec&action=tool.called"):
        assert ids_in(superuser_client, query) == [direct.id, in_run.id], query
    assert ids_in(superuser_client, "?tool=bash.exec&action=run.started") == []
    assert occurring_tools() == ["bash.exec", "echo"]


def test_the_rows_of_a_tool_are_read_through_their_index(
    record_event: Callable[..., AuditEntry],
) -> None:
    record_event("tool.called", "run", "run_1", tool="bash.exec")
    rows = filter_by_tool(AuditEntry.objects.order_by("-id"), "bash.exec")
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_indexscan = on")
        assert "audit_tool" in rows.explain() or "audit_tool" in rows.order_by().explain()


def test_the_token_of_an_event_is_named(
    superuser_client: Client, record_event: Callable[..., AuditEntry]
) -> None:
    actor = f"token:{new_id('tok_')}"
    entry = record_event("run.refused", "template", "t", actor=actor, requestedBy=actor)
    for page in (LIST, f"{LIST}{entry.id}/change/"):
        assert actor.partition(":")[2] in superuser_client.get(page).content.decode(), page
        assert "***" not in superuser_client.get(page).content.decode(), page


def test_fifty_entries_take_as_many_queries_as_one_and_there_is_no_count_query(
    superuser_client: Client, record_event: Callable[..., AuditEntry]
) -> None:
    record_event("run.started", "run", "run_1")
    with CaptureQueriesContext(connection) as for_few:
        superuser_client.get(LIST)
    for number in range(50):
        record_event("tool.called", "run", f"run_{number}", actor=f"worker:wrk_{number}")
    with CaptureQueriesContext(connection) as for_many:
        superuser_client.get(LIST)
    assert len(for_many) == len(for_few) <= 8
    assert not [one for one in for_many.captured_queries if "COUNT(" in one["sql"].upper()]


def test_an_entry_links_to_its_object(
    superuser_client: Client, record_event: Callable[..., AuditEntry], make_run: Callable[..., Run]
) -> None:
    create_token(name="t")
    token, run = Token.objects.get(), make_run()
    record_event("run.submitted", "run", run.id, actor=f"token:{token.id}")
    page = superuser_client.get(LIST).content.decode()
    assert f"/admin/runs/run/{run.id}/change/" in page
    assert f"/admin/decisions/token/{token.id}/change/" in page


def test_an_entry_with_a_wrong_mac_is_reported(
    superuser_client: Client, record_event: Callable[..., AuditEntry]
) -> None:
    genuine = record_event("run.started", "run", "run_1")
    forged = AuditEntry(
        tenant_id="t",
        workspace_id="w",
        action="run.started",
        actor="attacker",
        mac="0" * 64,
        resource_type="run",
        resource_id="run_2",
        created_at=genuine.created_at,
    )
    forged.save(force_insert=True)
    assert (
        "valid: this installation wrote"
        in superuser_client.get(f"{LIST}{genuine.id}/change/").content.decode()
    )
    assert (
        "invalid: the row was changed"
        in superuser_client.get(f"{LIST}{forged.id}/change/").content.decode()
    )


def test_an_entry_shows_its_position_in_the_chain(
    superuser_client: Client, record_event: Callable[..., AuditEntry]
) -> None:
    sealed = record_event("run.started", "run", "run_1")
    Sealer().seal_all()
    link = AuditSeal.objects.get(entry_id=sealed.id)
    assert link.hash in superuser_client.get(f"{LIST}{sealed.id}/change/").content.decode()
    record_event("run.ended", "run", "run_1")
    page = superuser_client.get(LIST).content.decode()
    assert "not yet" in page
    assert f"Rows sealed into the hash chain: <b>{AuditSeal.objects.count()}</b>" in page


def test_the_filtered_rows_are_exported_with_their_chain(
    superuser_client: Client, record_event: Callable[..., AuditEntry], tmp_path: Path
) -> None:
    for number in range(3):
        record_event("run.started", "run", f"run_{number}")
    record_event("run.ended", "run", "run_1")
    Sealer().seal_all()
    response = superuser_client.post(f"{LIST}export/?action=run.started")
    assert "attachment" in response["Content-Disposition"]
    (tmp_path / "audit.jsonl").write_bytes(downloaded_bytes(response))
    report = check_bundle(tmp_path / "audit.jsonl")
    assert (report.faults, report.unsealed, report.lines["audit"]) == (0, 0, 3)
    export = AuditEntry.objects.get(action="audit.exported")
    assert (export.actor, export.metadata["filters"]) == ("admin:boss", {"action": "run.started"})


def test_an_export_needs_the_permission_and_a_post(
    superuser_client: Client, staff_client: Callable[..., Client]
) -> None:
    assert superuser_client.get(f"{LIST}export/").status_code == 405
    assert staff_client("runs.view_run").post(f"{LIST}export/").status_code == 403


@pytest.mark.parametrize(
    ("resource_type", "resource_id", "link"),
    [
        ("user", "ann lee", "/admin/decisions/user/?q=ann+lee"),
        ("session", "sess_1", "/admin/runners/browsersession/sess_1/change/"),
        ("tenant", "ten_1", "/admin/decisions/tenant/ten_1/change/"),
    ],
)
def test_the_object_of_a_row_is_one_click_away(
    superuser_client: Client,
    record_event: Callable[..., AuditEntry],
    resource_type: str,
    resource_id: str,
    link: str,
) -> None:
    record_event("thing.done", resource_type, resource_id)
    assert link in superuser_client.get(LIST).content.decode()


def test_metadata_is_escaped_and_without_secrets(
    superuser_client: Client, record_event: Callable[..., AuditEntry]
) -> None:
    entry = record_event(
        "run.started", "run", "run_1", text="<b>x</b>", url="https://me:hunter2@host/"
    )
    for path in (LIST, f"{LIST}{entry.id}/change/"):
        page = superuser_client.get(path).content.decode()
        assert "<b>x</b>" not in page
        assert "hunter2" not in page
