"""Shells and success paths: write rules, versions, idempotency keys and concurrent writes."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F

from decisions.foundation.errors import (
    ForbiddenUser,
    IdempotencyConflict,
    InvalidInput,
    Refused,
    VersionConflict,
)
from decisions.identity.principals import Principal, authenticate, create_token
from decisions.memory.objects import KEY_LIFETIME, list_objects, put_shell, put_success_path
from decisions.models import AuditEntry, ObjectVersion, UserObject
from tests.support.decisions.continuity import SHELL, SUCCESS_PATH
from tests.support.runs.concurrent_calls import at_once

ALICE_SHELL = {**SHELL, "user_id": "alice"}
ALICE_PATH = {**SUCCESS_PATH, "user_id": "alice"}


def put(principal: Principal, **changed: Any) -> dict[str, Any]:
    item: dict[str, Any] = put_shell(principal=principal, call={**ALICE_SHELL, **changed})["item"]
    return item


def test_a_new_shell_replaces_the_current_one_and_old_versions_are_kept(
    principal: Principal,
) -> None:
    first, second = put(principal), put(principal, confidence="low")
    assert (first["object_type"], first["name"], first["version"]) == ("shell", "shell", 1)
    assert first["payload"] == {k: SHELL[k] for k in ("social_interface", "narratives", "source")}
    assert (second["object_id"], second["version"]) == (first["object_id"], 2)
    listed = list_objects(principal=principal, user_id="alice", object_type="shell")
    assert listed == {"items": [second], "count": 1}
    versions = ObjectVersion.objects.order_by("version").values_list("confidence", "is_current")
    assert list(versions) == [("high", False), ("low", True)]


def test_a_success_path_of_the_same_name_is_a_new_version(principal: Principal) -> None:
    first = put_success_path(principal=principal, call=ALICE_PATH)["item"]
    renamed = {**ALICE_PATH, "name": "  read the notes ", "tags": ["a", "a"]}
    second = put_success_path(principal=principal, call=renamed)["item"]
    other = put_success_path(principal=principal, call={**ALICE_PATH, "name": "other"})["item"]
    assert (second["object_id"], second["version"]) == (first["object_id"], 2)
    assert second["payload"]["tags"] == ["a"]
    assert other["object_id"] != first["object_id"]
    listed = list_objects(principal=principal, user_id="alice", object_type="success_path")
    assert [item["name"] for item in listed["items"]] == ["other", "read the notes"]


def test_a_list_has_the_objects_of_the_user_newest_first_up_to_a_limit(
    principal: Principal,
) -> None:
    put(principal)
    put_success_path(principal=principal, call=ALICE_PATH)
    put_success_path(principal=principal, call={**ALICE_PATH, "user_id": "bob"})
    both = list_objects(principal=principal, user_id="alice")
    assert [item["object_type"] for item in both["items"]] == ["success_path", "shell"]
    assert list_objects(principal=principal, user_id="alice", limit=1)["count"] == 1
    assert list_objects(principal=principal, user_id="nobody") == {"items": [], "count": 0}


@pytest.mark.parametrize("evidence", [None, "", "  "])
def test_an_inferred_shell_needs_its_evidence(principal: Principal, evidence: str | None) -> None:
    fields = {} if evidence is None else {"evidence": evidence}
    with pytest.raises(InvalidInput, match="evidence"):
        put(principal, source="inferred", **fields)
    assert not UserObject.objects.exists()
    written = put(principal, source="inferred", evidence="stated twice")
    assert written["payload"]["evidence"] == "stated twice"


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"slot_definitions": {}}, "url"),
        ({"required_slots": ["url", "tag"]}, "tag"),
        ({"procedure": [{"tool": "t", "args": {"a": ["x ${deep}"]}}]}, "deep"),
        ({"slot_definitions": {"url": " "}}, "slot_definitions.url"),
        ({"success_criteria": " "}, "success_criteria"),
        ({"intent": "\t"}, "intent"),
        ({"procedure": " "}, "procedure"),
        ({"name": "  "}, "name"),
    ],
)
def test_an_incomplete_success_path_is_refused(
    principal: Principal, changed: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidInput, match=named):
        put_success_path(principal=principal, call={**ALICE_PATH, **changed})
    assert not UserObject.objects.exists()


def test_an_object_that_is_too_large_is_refused(principal: Principal) -> None:
    with pytest.raises(InvalidInput, match="bytes"):
        put(principal, narratives={"all": "x" * 300_000})


@pytest.mark.parametrize("tags", ["1", '"1"', '"9", "1"', "*"])
def test_a_write_that_names_the_current_version_succeeds(principal: Principal, tags: str) -> None:
    put(principal)
    assert put(principal, if_match=tags)["version"] == 2


@pytest.mark.parametrize("tags", ["stale", "0", '"2"', "", 'W/"1"'])
def test_a_write_that_names_another_version_changes_nothing(
    principal: Principal, tags: str
) -> None:
    put(principal)
    with pytest.raises(VersionConflict):
        put(principal, confidence="low", if_match=tags)
    assert ObjectVersion.objects.get().confidence == "high"


def test_a_first_write_cannot_require_an_existing_version(principal: Principal) -> None:
    with pytest.raises(VersionConflict):
        put(principal, if_match="*")
    assert not UserObject.objects.exists()


def test_a_repeated_key_writes_once_and_returns_the_same_answer(principal: Principal) -> None:
    first = put(principal, idempotency_key="k")
    put(principal, confidence="low", idempotency_key="another")
    assert put(principal, idempotency_key="k") == first
    assert put(principal, idempotency_key="k", if_match="stale") == first
    assert ObjectVersion.objects.count() == 2


def test_a_key_reused_for_a_different_write_is_a_conflict(principal: Principal) -> None:
    put(principal, idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        put(principal, confidence="low", idempotency_key="k")
    assert put(principal, user_id="bob", confidence="low", idempotency_key="k")["version"] == 1
    path = put_success_path(principal=principal, call={**ALICE_PATH, "idempotency_key": "k"})
    assert path["item"]["version"] == 1


def test_a_key_expires_after_a_day(principal: Principal) -> None:
    put(principal, idempotency_key="k")
    ObjectVersion.objects.update(created_at=F("created_at") - KEY_LIFETIME - timedelta(minutes=1))
    assert put(principal, confidence="low", idempotency_key="k")["version"] == 2


@pytest.mark.parametrize("key", ["", "   "])
def test_a_blank_key_is_refused(principal: Principal, key: str) -> None:
    with pytest.raises(InvalidInput, match="idempotency_key"):
        put(principal, idempotency_key=key)


def test_one_of_many_concurrent_writes_with_one_key_is_performed(principal: Principal) -> None:
    items = at_once([partial(put, principal, idempotency_key="k")] * 8)
    assert {item["version"] for item in items} == {1}
    assert ObjectVersion.objects.count() == 1


def test_one_of_many_concurrent_writes_of_one_version_is_performed(principal: Principal) -> None:
    put(principal)

    def write() -> str:
        try:
            return str(put(principal, if_match="1")["version"])
        except VersionConflict as conflict:
            return conflict.code

    results = at_once([write] * 8)
    assert sorted(results) == ["2"] + ["version_conflict"] * 7


def test_concurrent_writes_leave_one_current_version(principal: Principal) -> None:
    at_once([partial(put, principal)] * 8)
    assert sorted(ObjectVersion.objects.values_list("version", flat=True)) == list(range(1, 9))
    assert ObjectVersion.objects.get(is_current=True).version == 8


def test_a_write_and_a_refused_user_are_audited(principal: Principal) -> None:
    item = put(principal)
    entry = AuditEntry.objects.get(action="object.written")
    assert entry.resource_id == item["object_id"]
    assert entry.metadata == {"type": "shell", "userId": "alice", "version": 1}
    caller = authenticate(create_token(name="b", users=["bob"]))
    with pytest.raises(ForbiddenUser):
        put(caller)
    assert AuditEntry.objects.filter(action="access.refused", resource_id="alice").count() == 1


def test_another_workspace_has_its_own_objects(principal: Principal, outsider: Principal) -> None:
    put(principal)
    assert list_objects(principal=outsider, user_id="alice")["count"] == 0
    assert put(outsider)["version"] == 1


def test_a_reader_cannot_write(principal: Principal) -> None:
    reader = authenticate(create_token(name="r", scopes=frozenset({"continuity:read"})))
    with pytest.raises(Refused):
        put(reader)


def test_the_database_refuses_two_current_versions(principal: Principal) -> None:
    put(principal)
    put(principal)
    # SQLite names the column instead of the constraint.
    refusal = r"object_one_current|UNIQUE constraint failed: \w+\.object_id$"
    with pytest.raises(IntegrityError, match=refusal), transaction.atomic():
        ObjectVersion.objects.update(is_current=True)


def test_the_same_key_in_another_workspace_is_another_write(
    principal: Principal, outsider: Principal
) -> None:
    put(principal, idempotency_key="k")
    assert put(outsider, confidence="low", idempotency_key="k")["version"] == 1
