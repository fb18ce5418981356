"""Audit rows carry the application's MAC, and the database itself rejects changes and deletes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import DatabaseError, connection, transaction
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from decisions.audit.record import AuditEvent, is_genuine, record, record_all
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.models import Run
from runs.submission.cancel import cancel_run

TABLE = "decisions_auditentry"
COLUMNS = "tenant_id, workspace_id, action, actor, resource_type, resource_id, metadata, created_at"
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\u00e9\u6f22 "), inner),
    max_leaves=5,
)


def an_event(**metadata: Any) -> AuditEvent:
    return AuditEvent("run.canceled", "local", "run", "run_1", "ten_1", "ws_1", metadata)


def entry() -> AuditEntry:
    record(an_event(reason="why"))
    return AuditEntry.objects.latest("id")


def assert_rejected(statement: str, *params: Any) -> None:
    """Run a statement past the ORM; the database has to reject it."""
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement, params)


def test_the_database_rejects_an_update(principal: Principal) -> None:
    audit_row = entry()
    assert_rejected(f"UPDATE {TABLE} SET actor = 'another actor' WHERE id = %s", audit_row.id)  # noqa: S608
    assert_rejected(f"UPDATE {TABLE} SET id = id + 1000 WHERE id = %s", audit_row.id)  # noqa: S608
    assert is_genuine(AuditEntry.objects.get(id=audit_row.id))


def test_the_database_rejects_a_delete(principal: Principal) -> None:
    audit_row = entry()
    assert_rejected(f"DELETE FROM {TABLE} WHERE id = %s", audit_row.id)  # noqa: S608
    assert_rejected(f"DELETE FROM {TABLE}")  # noqa: S608
    assert AuditEntry.objects.filter(id=audit_row.id).exists()


def test_the_database_rejects_a_second_row_with_the_same_id(principal: Principal) -> None:
    audit_row = entry()
    values = f"SELECT {COLUMNS}, mac FROM {TABLE} WHERE id = %s"  # noqa: S608
    picked = f"SELECT {audit_row.id}, {COLUMNS}, mac FROM ({values}) AS same"  # noqa: S608
    into = f"{TABLE} (id, {COLUMNS}, mac) {picked}"
    if connection.vendor == "sqlite":
        for verb in ("INSERT", "INSERT OR REPLACE", "REPLACE", "INSERT OR IGNORE"):
            assert_rejected(f"{verb} INTO {into}", audit_row.id)
    else:
        assert_rejected(
            f"INSERT INTO {into} ON CONFLICT (id) DO UPDATE SET actor = 'x'", audit_row.id
        )
    assert AuditEntry.objects.filter(id=audit_row.id).count() == 1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="TRUNCATE is PostgreSQL's")
def test_the_database_rejects_a_truncate(principal: Principal) -> None:
    entry()
    assert_rejected(f"TRUNCATE {TABLE}")
    assert_rejected(f"TRUNCATE {TABLE} CASCADE")
    assert AuditEntry.objects.exists()


def test_the_orm_cannot_change_a_row_either(principal: Principal) -> None:
    audit_row = entry()
    audit_row.actor = "another actor"
    for change in (audit_row.save, audit_row.delete, AuditEntry.objects.all().delete):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change()


@pytest.mark.parametrize(
    "change",
    [
        {"actor": "x"},
        {"action": "x"},
        {"resource_id": "run_2"},
        {"resource_type": "x"},
        {"tenant_id": "x"},
        {"workspace_id": "x"},
        {"metadata": {"reason": "another"}},
        {"metadata": {}},
        {"mac": "0" * 64},
        {"mac": ""},
        {"mac": "\u6f22" * 64},
    ],
)
def test_a_change_of_any_column_is_detected(principal: Principal, change: dict[str, Any]) -> None:
    audit_row = entry()
    assert is_genuine(audit_row)
    for name, value in change.items():
        setattr(audit_row, name, value)
    assert not is_genuine(audit_row)


def test_a_change_of_the_time_is_detected_too(principal: Principal) -> None:
    audit_row = entry()
    audit_row.created_at += timedelta(microseconds=1)
    assert not is_genuine(audit_row)


def test_a_row_inserted_by_other_means_is_detected(principal: Principal) -> None:
    audit_row = entry()
    audit_row.id, audit_row.actor = None, "forged"
    AuditEntry.objects.bulk_create([audit_row])
    assert [is_genuine(row) for row in AuditEntry.objects.order_by("id")] == [True, False]


def test_rows_written_with_an_older_key_stay_genuine(principal: Principal) -> None:
    audit_row = entry()
    old = django_settings.CONTINUITY_SECRET_KEYS
    with override_settings(CONTINUITY_SECRET_KEYS=["n" * 40, *old]):
        assert is_genuine(AuditEntry.objects.get(id=audit_row.id))
        assert is_genuine(entry())
    with override_settings(CONTINUITY_SECRET_KEYS=["n" * 40]):
        assert not is_genuine(AuditEntry.objects.get(id=audit_row.id))


@settings(max_examples=60)
@given(metadata=st.dictionaries(st.text("abc"), json_values, max_size=3))
@pytest.mark.usefixtures("principal")
def test_a_row_reads_back_genuine_whatever_its_event_contains(metadata: dict[str, Any]) -> None:
    record(an_event(**metadata))
    assert is_genuine(AuditEntry.objects.latest("id"))


def test_many_rows_are_one_statement_in_order(
    principal: Principal, django_assert_num_queries: Callable[..., Any]
) -> None:
    with transaction.atomic(), django_assert_num_queries(1):
        record_all([an_event(n=number) for number in range(5)])
    assert [row.metadata["n"] for row in AuditEntry.objects.order_by("id")] == [0, 1, 2, 3, 4]
    record_all([])


def test_a_rolled_back_event_leaves_no_row(
    submit: Callable[..., str], principal: Principal
) -> None:
    run_id = submit()

    def cancel_and_fail() -> None:
        with transaction.atomic():
            cancel_run(principal=principal, run_id=run_id)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cancel_and_fail()
    assert Run.objects.get(id=run_id).status == "queued"
    assert not AuditEntry.objects.filter(action="run.canceled").exists()
