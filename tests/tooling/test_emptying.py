"""Every test starts with empty tables, and the triggers of the database stay in place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.db import DatabaseError, models

from decisions.identity.principals import Principal, local_principal
from decisions.models import AuditEntry
from runs.models import Run
from runs.queries.totals import missing_triggers
from runs.queue.slots import ensure_slots
from tests import emptying

PERMANENT = {"auth.Permission", "contenttypes.ContentType"}


def models_with_rows() -> set[str]:
    found: list[type[models.Model]] = [m for m in apps.get_models() if m._meta.managed]
    return {model._meta.label for model in found if model._default_manager.exists()}


@pytest.mark.parametrize("small_bytes", [emptying.SMALL_BYTES, -1])
def test_no_row_remains_in_small_or_large_tables(
    submit: Callable[..., str], monkeypatch: pytest.MonkeyPatch, small_bytes: int
) -> None:
    monkeypatch.setattr(emptying, "SMALL_BYTES", small_bytes)
    for _ in range(2):  # the first call in a process takes the slow path
        ensure_slots()
        submit_one(submit)
        assert {"runs.Run", "runs.RunTotalChange", "decisions.AuditEntry"} <= models_with_rows()
        emptying.empty()
        assert models_with_rows() == PERMANENT
    assert missing_triggers() == set()


def submit_one(submit: Callable[..., str]) -> None:
    local_principal()
    assert Run.objects.filter(id=submit()).exists()


def test_the_audit_log_is_append_only_afterwards(submit: Callable[..., str]) -> None:
    emptying.empty()
    ensure_slots()
    submit_one(submit)
    with pytest.raises(DatabaseError, match="append-only"):
        AuditEntry.objects.all().delete()


def test_a_permission_that_a_test_created_is_deleted(principal: Principal) -> None:
    emptying.empty()
    other = Permission.objects.first()
    assert other is not None
    Permission.objects.create(codename="made", name="Made", content_type=other.content_type)
    emptying.empty()
    assert not Permission.objects.filter(codename="made").exists()
    assert Permission.objects.filter(codename="view_run").exists()
