"""GET /audit: filters, pages, scopes; rows of other workspaces are not returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from decisions.audit.query import list_audit_entries
from decisions.audit.record import AuditEvent, entry_for, record, record_all
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from tests.support.decisions.continuity import create_decision
from tests.support.rest.rest import refusal


@pytest.fixture
def record_event(principal: Principal) -> Callable[..., int]:
    """Record an audit event and return its row's id: `record_event("run.started", "run_1")`."""

    def make(
        action: str,
        resource_id: str = "run_1",
        actor: str = "local",
        minutes_ago: int = 0,
        at: datetime | None = None,
    ) -> int:
        workspace = principal.tenant_id, principal.workspace_id
        row = entry_for(AuditEvent(action, actor, "run", resource_id, *workspace, {"n": 1}))
        row.created_at = (at or datetime.now(UTC)) - timedelta(minutes=minutes_ago)
        row.save(force_insert=True)
        return int(row.id)

    return make


def ids(response: httpx.Response) -> list[int]:
    assert response.status_code == 200, response.text
    return [item["id"] for item in response.json()["items"]]


def test_rows_are_listed_newest_first_as_in_the_contract(
    api: httpx.Client, record_event: Callable[..., int], principal: Principal
) -> None:
    record_event("run.started", "run_old")
    newest = record_event("run.ended", "run_new", actor="worker:wrk_1")
    item, *_ = api.get("/api/v1/audit", params={"limit": 1}).json()["items"]
    assert abs(item.pop("createdAt") / 1000 - datetime.now(UTC).timestamp()) < 3600
    assert item == {
        "id": newest,
        "tenantId": principal.tenant_id,
        "workspaceId": principal.workspace_id,
        "action": "run.ended",
        "actor": "worker:wrk_1",
        "resourceType": "run",
        "resourceId": "run_new",
        "metadata": {"n": 1},
    }


def test_a_token_with_users_reads_the_rows_of_its_users_and_its_own(
    principal: Principal, record_event: Callable[..., int]
) -> None:
    agent = replace(principal, id="token:tok_a", acts_for=frozenset({"alice"}))
    workspace, rows_until = (principal.tenant_id, principal.workspace_id), {}
    for user in ("alice", "bob"):
        decision = create_decision(principal, user_id=user)
        record(AuditEvent("decision.made", "local", "decision", str(decision.pk), *workspace))
        record(AuditEvent("access.refused", "token:tok_b", "user", user, *workspace))
        rows_until[user] = set(AuditEntry.objects.values_list("id", flat=True))
    own_rows = {
        record_event("run.submitted", "run_a", "token:tok_a"),
        record_event("run.ended", "run_a", "worker:w"),
    }
    record_event("run.submitted", "run_b", "token:tok_b")
    record_event("run.ended", "run_b", "worker:w")
    items = list_audit_entries(principal=agent)["items"]
    assert {item["id"] for item in items} == rows_until["alice"] | own_rows
    newest = list_audit_entries(principal=agent, limit=1)
    assert newest["items"] == items[:1]
    rest = list_audit_entries(principal=agent, cursor=newest["nextCursor"])["items"]
    assert rest == items[1:]


def test_each_filter_returns_only_matching_rows(
    api: httpx.Client, record_event: Callable[..., int], principal: Principal
) -> None:
    one = record_event("run.started", "run_a", "token:tok_1")
    two = record_event("run.ended", "run_b", "token:tok_2")
    cases: list[tuple[dict[str, str], list[int]]] = [
        ({"action": "run.started"}, [one]),
        ({"actor": "token:tok_2"}, [two]),
        ({"resourceId": "run_a"}, [one]),
        ({"resourceId": "run_a", "action": "run.ended"}, []),
        ({"workspaceId": principal.workspace_id, "actor": "token:tok_1"}, [one]),
        ({"workspaceId": "ws_elsewhere"}, []),
        ({"tenantId": "ten_elsewhere"}, []),
    ]
    for query, expected in cases:
        assert ids(api.get("/api/v1/audit", params=query)) == expected, query


def test_a_time_range_includes_its_start_and_excludes_its_end(
    api: httpx.Client, record_event: Callable[..., int]
) -> None:
    row_ids = [
        record_event("run.started", f"run_{ago}", minutes_ago=ago) for ago in (300, 200, 100)
    ]
    starts = [int(AuditEntry.objects.get(id=one).created_at.timestamp() * 1000) for one in row_ids]
    query: dict[str, Any] = {"from": starts[0], "to": starts[2], "action": "run.started"}
    assert ids(api.get("/api/v1/audit", params=query)) == [row_ids[1], row_ids[0]]
    assert ids(api.get("/api/v1/audit", params={"to": starts[0]})) == []
    assert ids(api.get("/api/v1/audit", params={"from": 4_000_000_000_000})) == []
    backwards = api.get("/api/v1/audit", params={"from": starts[2], "to": starts[0]})
    assert refusal(backwards, 400)["errorCode"] == "INVALID_PARAMETER"


@pytest.mark.parametrize("microsecond", [0, 1, 500_000, 999_499, 999_500, 999_999])
def test_a_time_is_returned_whatever_its_fraction_of_a_second(
    api: httpx.Client, record_event: Callable[..., int], microsecond: int
) -> None:
    row_id = record_event("run.started", at=datetime.now(UTC).replace(microsecond=microsecond))
    (item,) = api.get("/api/v1/audit", params={"action": "run.started"}).json()["items"]
    assert item["createdAt"] % 1000 == microsecond // 1000
    assert AuditEntry.objects.get(id=row_id).created_at.microsecond == microsecond


def test_pages_join_without_a_gap_while_rows_are_added(
    api: httpx.Client, record_event: Callable[..., int]
) -> None:
    row_ids = [record_event("run.started", f"run_{number}") for number in range(7)]
    listed: list[int] = []
    query: dict[str, Any] = {"limit": 3, "action": "run.started"}
    while True:
        page = api.get("/api/v1/audit", params=query).json()
        listed += [item["id"] for item in page["items"]]
        record_event("run.started", "run_later")
        if page["nextCursor"] is None:
            break
        query["cursor"] = page["nextCursor"]
    assert listed == row_ids[::-1]


def test_rows_of_another_workspace_are_not_returned(
    record_event: Callable[..., int], outsider: Principal
) -> None:
    record_event("run.started")
    assert list_audit_entries(principal=outsider) == {"items": [], "nextCursor": None}


def test_a_token_without_the_scope_is_rejected(client_with: Callable[..., httpx.Client]) -> None:
    limited_client = client_with(scopes=frozenset({"runs:read"}))
    assert refusal(limited_client.get("/api/v1/audit"), 403)["details"] == {"scope": "audit:read"}


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=1&limit=2",
        "cursor=",
        "cursor=-1",
        "cursor=x",
        "cursor=1%00",
        "cursor=9999999999999999999",
        "from=-1",
        "from=1.5",
        "to=2026-01-01",
        "from=99999999999999999",
        "action=",
        "actor=%00",
        "nothing=1",
        f"action={'x' * 65}",
    ],
)
def test_an_invalid_query_is_rejected_in_the_standard_error_format(
    api: httpx.Client, query: str
) -> None:
    assert refusal(api.get(f"/api/v1/audit?{query}"), 400)["errorCode"] == "INVALID_PARAMETER"


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"action": "run.started"},
        {"actor": "token:tok_1"},
        {"resource_id": "run_7"},
        {"since_ms": 1, "before_ms": 2},
        {"since_ms": 1_000_000_000_000, "cursor": "90"},
    ],
)
def test_no_filter_reads_the_whole_log(principal: Principal, filters: dict[str, Any]) -> None:
    workspace = principal.tenant_id, principal.workspace_id
    record_all(
        [
            AuditEvent("run.started", f"token:tok_{n}", "run", f"run_{n}", *workspace)
            for n in range(3000)
        ]
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    with CaptureQueriesContext(connection) as captured:
        list_audit_entries(principal=principal, limit=10, **filters)
    explain = "EXPLAIN " if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN "
    for query in captured.captured_queries:
        with connection.cursor() as cursor:
            cursor.execute(explain + query["sql"].replace("%", "%%"))
            plan = "\n".join(str(row) for row in cursor.fetchall())
        assert "Seq Scan" not in plan, plan
        assert "SCAN decisions_auditentry\n" not in plan + "\n", plan


def test_a_row_with_unusual_text_is_returned_unchanged(
    api: httpx.Client, principal: Principal
) -> None:
    workspace = principal.tenant_id, principal.workspace_id
    record(
        AuditEvent(
            "run.started", "local", "run", "run_漢", *workspace, {"key": "é\u2028", "big": 2**63}
        )
    )
    item, *_ = api.get("/api/v1/audit", params={"resourceId": "run_漢"}).json()["items"]
    assert item["metadata"] == {"key": "é\u2028", "big": 2**63}
