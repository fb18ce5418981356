"""What callers can do with targets, for REST."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import transaction

from decisions.authorization.authorize import (
    admit_call,
    confirmed_basis,
    tool_call_request,
    use_approval,
)
from decisions.authorization.policy_rules import list_rules_for_target
from decisions.foundation.errors import Conflict, Forbidden, InvalidInput, TargetNotFound
from decisions.foundation.infra.clock import to_ms
from decisions.foundation.presentation.visible_text import secret_named
from decisions.foundation.validation.json_schema import page_of
from decisions.identity.principals import Principal
from decisions.models import Confirmation
from runners.models import ExecutionTarget, TargetKind
from runners.targets.cache import target_state
from runners.targets.roots import RootTaken
from runners.targets.runner_endpoint import probe_target as probe_runner_target
from runners.targets.targets import (
    Caller,
    TargetFields,
    change_target,
    create_target_row,
    visible_targets,
)
from runners.targets.targets import delete_target as remove_target

ADMIN = "targets:admin"
READ = "tools:read"


def list_targets(
    *, principal: Principal, kind: str | None = None, limit: int = 50, offset: int = 0
) -> dict[str, Any]:
    """Return a page of targets that the caller may name: {targets, total, hasMore, nextCursor}."""
    principal.require(READ)
    rows = visible_targets(Caller.of(principal))
    rows = rows.filter(kind=kind) if kind is not None else rows
    total = rows.count()
    page = rows.order_by("-created_at", "-id")[offset : offset + limit]
    listed = [target_object(row, principal) for row in page]
    return page_of("targets", listed, total=total, offset=offset)


def get_target(*, principal: Principal, target_id: str) -> dict[str, Any]:
    """Return one target.

    Raises:
        TargetNotFound: Unknown, or another workspace's.
    """
    principal.require(READ)
    return target_object(_visible(principal, target_id), principal)


def create_target(*, principal: Principal, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Create a target in the caller's workspace. Commits.

    Raises:
        InvalidInput, Conflict: As `targets.create_target_row`.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`; so for every change below.
    """
    principal.require(ADMIN)
    target_fields = _target_fields(principal, fields["kind"], fields)
    with _authorized(principal, "create_target", fields):
        return target_object(create_target_row(target_fields, actor=principal.id), principal)


def replace_target(
    *, principal: Principal, target_id: str, fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Replace a target of the caller's workspace and increment its version. Commits.

    Raises:
        TargetNotFound: Unknown, or another workspace's.
        Forbidden: All workspaces use it, so only an operator may change it; or it is the folder of
            a command line.
        InvalidInput, Conflict: As `targets.change_target`.
    """
    principal.require(ADMIN)
    row = _own(principal, target_id)
    if row.is_local:
        raise Forbidden(
            "The command line of this machine created this target, so it cannot be changed.",
            details={"targetId": row.id},
        )
    target_fields = _target_fields(principal, row.kind, fields)
    version = fields.get("version")
    with _authorized(principal, "replace_target", {**fields, "targetId": row.id}):
        changed = change_target(row.id, target_fields, actor=principal.id, if_version=version)
        return target_object(changed, principal)


def delete_target(*, principal: Principal, target_id: str) -> dict[str, Any]:
    """Delete a target of the caller's workspace and retire the policy rules for it. Commits.

    Raises:
        TargetNotFound, Forbidden: As `replace_target`.
    """
    principal.require(ADMIN)
    row = _own(principal, target_id)
    with _authorized(principal, "delete_target", {"targetId": row.id}):
        remove_target(row.id, actor=principal.id)
    return {"success": True, "targetId": target_id}


def probe_target(*, principal: Principal, target_id: str) -> dict[str, Any]:
    """Probe a docker-runner for its health and its tools; takes a few seconds at most. Commits.

    Raises:
        TargetNotFound: Unknown, or another workspace's.
        InvalidInput: It is not a docker-runner.
    """
    principal.require(ADMIN)
    row = _visible(principal, target_id)
    if row.kind != TargetKind.DOCKER_RUNNER:
        raise InvalidInput("targetId: only targets of kind docker-runner are probed.")
    with _authorized(principal, "probe_target", {"targetId": row.id}):
        row = _visible(principal, row.id)
    return target_object(probe_runner_target(row, actor=principal.id), principal)


def basis_of_change(tool: str, target_id: str, *, locks: bool = False) -> str:
    """Return the digest of what a change or a probe of a target works on: the target, and for
    `delete_target` the policy rules that it retires.

    Args:
        locks: none of it is changed by others until the transaction ends.
    """
    rows = ExecutionTarget.objects.select_for_update() if locks else ExecutionTarget.objects.all()
    row = rows.filter(id=target_id).first()
    is_deletion = tool == "delete_target"
    rules = list_rules_for_target(target_id, locks=locks) if is_deletion else []
    state = [target_state(row) if row else "", [[rule.key, rule.version] for rule in rules]]
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()


def target_object(row: ExecutionTarget, principal: Principal) -> dict[str, Any]:
    """Return a target for the API: never its token, and a folder's path only for local callers."""
    hides_root = row.kind == TargetKind.WORKSPACE and principal.trust != "local"
    return {
        "targetId": row.id,
        "tenantId": row.tenant_id,
        "workspaceId": row.workspace_id,
        "kind": row.kind,
        "name": row.name,
        "endpoint": row.endpoint,
        "hasAuthToken": row.sealed_auth_token is not None,
        "isDefault": row.is_default,
        "enabled": row.enabled,
        "config": {} if hides_root else row.config,
        "version": row.version,
        "createdAt": to_ms(row.created_at),
        "updatedAt": to_ms(row.updated_at),
        "lastSeenAt": to_ms(row.last_seen_at),
        "probedAt": to_ms(row.probed_at),
        "probeError": row.probe_error,
        "tools": [offer["name"] for offer in row.catalogue],
        "toolsError": row.catalogue_error,
    }


@contextmanager
def _authorized(principal: Principal, tool: str, fields: Mapping[str, Any]) -> Iterator[None]:
    """Authorize a change, and execute it in the transaction that uses up an approval. It is bound
    to the target as the person saw it, and to the token, which is masked in records and stands by
    its name where a person decides.
    """
    has_token = bool(fields.get("authToken"))
    masked = {**fields, "authToken": "***"} if has_token else fields
    shown = {**fields, "authToken": secret_named("authToken")} if has_token else fields
    approval = admit_call(
        tool_call_request(principal, tool, fields, display_args=masked, shown_args=shown)
    )
    try:
        with transaction.atomic():
            use_approval(approval)
            _require_confirmed(tool, fields, approval)
            yield
    except RootTaken:
        raise RootTaken.for_callers() from None


def _require_confirmed(tool: str, fields: Mapping[str, Any], approval: Confirmation | None) -> None:
    """Lock what an approved change of a target works on; raise if it is not as the person saw it.

    Raises:
        Conflict: It has changed.
    """
    if approval is None or "targetId" not in fields:
        return
    target_id = fields["targetId"]
    if basis_of_change(tool, target_id, locks=True) != confirmed_basis(approval):
        raise Conflict(
            f"The target {target_id}, or a policy rule for it, has changed since a person was asked"
            " to confirm this. Nothing was done. Repeat the call; it needs a new confirmation.",
            details={"targetId": target_id},
        )


def _target_fields(principal: Principal, kind: str, fields: Mapping[str, Any]) -> TargetFields:
    auth_token = (fields["authToken"] or "") if "authToken" in fields else None
    return TargetFields(
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        name=fields["name"],
        kind=kind,
        endpoint=fields.get("endpoint"),
        auth_token=auth_token,
        is_default=fields.get("isDefault", False),
        enabled=fields.get("enabled", True),
        config=fields.get("config", {}),
    )


def _visible(principal: Principal, target_id: str) -> ExecutionTarget:
    row = visible_targets(Caller.of(principal)).filter(id=target_id).first()
    if row is None:
        raise TargetNotFound(f"There is no target {target_id[:64]!r} here.")
    return row


def _own(principal: Principal, target_id: str) -> ExecutionTarget:
    row = _visible(principal, target_id)
    if row.workspace_id is None:
        raise Forbidden(
            "Other workspaces use this target too. An operator can change it in the admin.",
            details={"targetId": row.id},
        )
    return row
