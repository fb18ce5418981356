"""Objects of a user: one Shell, and success paths by name. Each write adds a version.

Writes of one user are serialized by a lock on the user's row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.foundation.errors import IdempotencyConflict, InvalidInput, VersionConflict
from decisions.foundation.validation.json_output import json_digest
from decisions.identity.principals import Principal
from decisions.memory.owner import Owner, owner_of
from decisions.memory.success_paths import path_payload, shell_payload
from decisions.models import ObjectType, ObjectVersion, UserObject

KEY_LIFETIME = timedelta(hours=24)
MAX_PAYLOAD = 256 * 1024  # bytes of JSON
SHELL_NAME = "shell"
_ABOUT_THE_CALL = {"user_id", "idempotency_key", "if_match"}


def put_shell(*, principal: Principal, call: Mapping[str, Any]) -> dict[str, Any]:
    """Write the user's Shell and return {ok, item}. Commits.

    The same call with the same key within 24 hours returns the item that the first one wrote.

    Args:
        call: arguments that are valid by PUT_SHELL_INPUT.

    Raises:
        Forbidden, ForbiddenUser: As `owner_of`.
        InvalidInput: An inferred Shell has no evidence, the key is blank, or the object too large.
        VersionConflict: The current version is not the one in if_match.
        IdempotencyConflict: The key was used for another call within 24 hours.
        PolicyDenied, ConfirmationRequired, Conflict: As `authorize.admit_call` and `use_approval`.
    """
    about = ObjectType.SHELL, SHELL_NAME
    return _put(principal, call, "continuity_put_shell", about, shell_payload)


def put_success_path(*, principal: Principal, call: Mapping[str, Any]) -> dict[str, Any]:
    """Write a success path, a new version if the user has one of this name. Returns as `put_shell`.

    Args:
        call: arguments that are valid by PUT_SUCCESS_PATH_INPUT.

    Raises:
        InvalidInput: Also if a slot has no definition, or a text is blank.
        Refused: As `put_shell`.
    """
    name = str(call["name"]).strip()
    if not name:
        raise InvalidInput("name: it is blank.")
    about = ObjectType.SUCCESS_PATH, name
    return _put(principal, call, "continuity_put_success_path", about, path_payload)


def list_objects(
    *, principal: Principal, user_id: str, object_type: str | None = None, limit: int = 50
) -> dict[str, Any]:
    """Return {items, count} of a user's objects: current versions, last written first.

    Raises:
        Forbidden, ForbiddenUser: As `owner_of`.
    """
    owner = owner_of(principal, user_id, scope="continuity:read")
    items = [item_of(version) for version in current_versions(owner, object_type)[:limit]]
    return {"items": items, "count": len(items)}


def get_latest_shell(*, principal: Principal, user_id: str) -> dict[str, Any]:
    """Return {item}: the user's Shell in its current version, or null.

    Raises:
        Forbidden, ForbiddenUser: As `owner_of`.
    """
    owner = owner_of(principal, user_id, scope="continuity:read")
    shell = current_versions(owner, ObjectType.SHELL).first()
    return {"item": None if shell is None else item_of(shell)}


def current_versions(owner: Owner, object_type: str | None) -> Any:
    """Return a queryset of the current versions with their objects, of one type or (None) of all,
    last written first.
    """
    found = ObjectVersion.objects.select_related("object").filter(
        is_current=True, object__workspace_id=owner.workspace_id, object__user_id=owner.user_id
    )
    if object_type is not None:
        found = found.filter(object__object_type=object_type)
    return found.order_by("-object__updated_at", "-object_id")


def find_success_path(
    principal: Principal | None, object_id: str, version: int | None
) -> ObjectVersion | None:
    """Return a version of a success path, for None the current one.

    Returns None if there is none, or it belongs to a user that the caller may not act for.

    Args:
        principal: the caller; None skips the check of rights.
    """
    found = ObjectVersion.objects.select_related("object").filter(
        object_id=object_id, object__object_type=ObjectType.SUCCESS_PATH
    )
    if principal is not None:
        found = found.filter(object__workspace_id=principal.workspace_id)
    wanted = found.filter(version=version) if version else found.filter(is_current=True)
    path = wanted.first()
    if path is None or (principal and not principal.may_act_for(path.object.user_id)):
        return None
    return path


def item_of(version: ObjectVersion) -> dict[str, Any]:
    """Return an object in one of its versions as the APIs represent it."""
    return {
        "object_id": version.object.id,
        "object_type": version.object.object_type,
        "name": version.object.name,
        "payload": version.payload,
        "confidence": version.confidence,
        "validity": version.validity,
        "updated_at": version.created_at.isoformat(),
        "version": version.version,
    }


def _put(
    principal: Principal,
    call: Mapping[str, Any],
    tool: str,
    about: tuple[ObjectType, str],
    payload_of: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    owner = owner_of(principal, call["user_id"], scope="continuity:write")
    draft = _draft(owner, call, about, payload_of)
    draft.written_by = principal.id
    version = _written_before(draft)
    if version is None:  # a repeated call needs no second confirmation
        use = tool_call_request(principal, tool, call, key=draft.idempotency_key or "")
        approval = admit_call(use)
        with transaction.atomic():
            owner.lock()
            version = _written_before(draft)
            if version is None:
                use_approval(approval)
                version = _write(owner, draft, call.get("if_match"))
    return {"ok": True, "item": item_of(version)}


def _draft(
    owner: Owner,
    call: Mapping[str, Any],
    about: tuple[ObjectType, str],
    payload_of: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> ObjectVersion:
    """Return the unsaved version that a call writes, of an unsaved object of this type and name."""
    key = call.get("idempotency_key")
    if key is not None and not key.strip():
        raise InvalidInput("idempotency_key: it is blank; leave it out, or give one.")
    payload = payload_of(call)
    if len(orjson.dumps(payload)) > MAX_PAYLOAD:
        raise InvalidInput(f"The object has more than {MAX_PAYLOAD} bytes of JSON.")
    content = {name: value for name, value in call.items() if name not in _ABOUT_THE_CALL}
    object_type, name = about
    return ObjectVersion(
        object=UserObject(**owner.columns, object_type=object_type, name=name),
        version=1,
        is_current=True,
        payload=payload,
        confidence=call["confidence"],
        validity=call["validity"],
        idempotency_key=key,
        call_digest=json_digest(content).hex(),
    )


def _written_before(draft: ObjectVersion) -> ObjectVersion | None:
    """Return the version that the same key wrote in the last 24 hours."""
    if draft.idempotency_key is None:
        return None
    found = (
        ObjectVersion.objects.select_related("object")
        .filter(
            idempotency_key=draft.idempotency_key,
            created_at__gt=datetime.now(UTC) - KEY_LIFETIME,
            object__workspace_id=draft.object.workspace_id,
            object__user_id=draft.object.user_id,
            object__object_type=draft.object.object_type,
        )
        .order_by("-id")
        .first()
    )
    if found is not None and found.call_digest != draft.call_digest:
        raise IdempotencyConflict("This idempotency_key was used for another object.")
    return found


def _write(owner: Owner, draft: ObjectVersion, if_match: str | None) -> ObjectVersion:
    """Save a draft: with its object, or as the next version of the one that has its name."""
    about = draft.object
    current = current_versions(owner, about.object_type).filter(object__name=about.name).first()
    _check_version(if_match, current)
    draft.created_at = now = datetime.now(UTC)
    if current is None:
        about.created_at = about.updated_at = now
        about.save(force_insert=True)
    else:
        draft.object, draft.version = current.object, current.version + 1
        ObjectVersion.objects.filter(pk=current.pk).update(is_current=False)
        UserObject.objects.filter(pk=current.object_id).update(updated_at=now)
    draft.save(force_insert=True)
    details = {"type": str(about.object_type), "userId": owner.user_id, "version": draft.version}
    scope = owner.tenant_id, owner.workspace_id
    by, object_id = draft.written_by, draft.object.id
    record(AuditEvent("object.written", by, "userobject", object_id, *scope, details))
    return draft


def _check_version(if_match: str | None, current: ObjectVersion | None) -> None:
    """Raise unless `if_match` includes the current version (RFC 9110 §13.1.1: a list of entity
    tags, or `*` for any).
    """
    if if_match is None:
        return
    tags = {tag.strip().strip('"') for tag in if_match.split(",")}
    if current is None:
        raise VersionConflict("There is no such object yet; write it without If-Match.")
    if "*" not in tags and str(current.version) not in tags:
        raise VersionConflict(f"The object is in version {current.version} now.")
