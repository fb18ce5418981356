"""What callers can do with targets; every door comes through here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import transaction

from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.errors import Forbidden, InvalidInput, TargetNotFound
from decisions.identity.principals import Principal
from decisions.infra.clock import to_ms
from runners.models import ExecutionTarget, TargetKind
from runners.targets.runner_endpoint import probe_target as ask_runner
from runners.targets.targets import Caller, TargetSays, change_target, make_target, visible_targets
from runners.targets.targets import delete_target as remove_target

ADMIN = "targets:admin"
READ = "tools:read"


def list_targets(
    *, principal: Principal, kind: str | None = None, limit: int = 50, offset: int = 0
) -> dict[str, Any]:
    """Return {targets, total, hasMore, nextCursor}: those that the caller may name."""
    principal.require(READ)
    rows = visible_targets(Caller.of(principal))
    rows = rows.filter(kind=kind) if kind is not None else rows
    total = rows.count()
    page = list(rows.order_by("-created_at", "-id")[offset : offset + limit])
    more = offset + len(page) < total
    return {
        "targets": [target_object(row, principal) for row in page],
        "total": total,
        "hasMore": more,
        "nextCursor": str(offset + len(page)) if more else None,
    }


def get_target(*, principal: Principal, target_id: str) -> dict[str, Any]:
    """Return one target.

    Raises:
        TargetNotFound: Unknown, or another workspace's.
    """
    principal.require(READ)
    return target_object(_visible(principal, target_id), principal)


def create_target(*, principal: Principal, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Make a target of the caller's workspace.

    Raises:
        InvalidInput, Conflict: As `targets.make_target`.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`, here and of every change below.
    """
    principal.require(ADMIN)
    says = _says(principal, asked["kind"], asked)
    with _admitted(principal, "create_target", asked):
        return target_object(make_target(says, actor=principal.id), principal)


def replace_target(
    *, principal: Principal, target_id: str, asked: Mapping[str, Any]
) -> dict[str, Any]:
    """Have a target of the caller's workspace be something else; its version is raised.

    Raises:
        TargetNotFound: Unknown, or another workspace's.
        Forbidden: It is every workspace's: an operator's affair.
        InvalidInput, Conflict: As `targets.change_target`.
    """
    principal.require(ADMIN)
    row = _own(principal, target_id)
    says = _says(principal, row.kind, asked)
    version = asked.get("version")
    with _admitted(principal, "replace_target", {**asked, "targetId": row.id}):
        changed = change_target(row.id, says, actor=principal.id, if_version=version)
        return target_object(changed, principal)


def delete_target(*, principal: Principal, target_id: str) -> dict[str, Any]:
    """Take a target of the caller's workspace away, with the rules about it alone.

    Raises:
        TargetNotFound, Forbidden: As `replace_target`.
    """
    principal.require(ADMIN)
    row = _own(principal, target_id)
    with _admitted(principal, "delete_target", {"targetId": row.id}):
        remove_target(row.id, actor=principal.id)
    return {"success": True, "targetId": target_id}


def probe_target(*, principal: Principal, target_id: str) -> dict[str, Any]:
    """Ask a docker-runner for its health and its tools; it takes a few seconds at most.

    Raises:
        TargetNotFound: Unknown, or another workspace's.
        InvalidInput: It is no docker-runner.
    """
    principal.require(ADMIN)
    row = _visible(principal, target_id)
    if row.kind != TargetKind.DOCKER_RUNNER:
        raise InvalidInput("targetId: only targets of kind docker-runner are probed.")
    use_approval(admit_call(tool_call_request(principal, "probe_target", {"targetId": row.id})))
    return target_object(ask_runner(row, actor=principal.id), principal)


def target_object(row: ExecutionTarget, principal: Principal) -> dict[str, Any]:
    """Return a target as callers see it: its token never, a folder's place for local callers."""
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
def _admitted(principal: Principal, deed: str, asked: Mapping[str, Any]) -> Iterator[None]:
    """Ask policy, then do what is done within in the transaction that uses an approval up; of a
    token only that there is one is shown.
    """
    shown = {**asked, "authToken": "***"} if asked.get("authToken") else asked
    approval = admit_call(tool_call_request(principal, deed, shown))
    with transaction.atomic():
        use_approval(approval)
        yield


def _says(principal: Principal, kind: str, asked: Mapping[str, Any]) -> TargetSays:
    auth_token = (asked["authToken"] or "") if "authToken" in asked else None
    return TargetSays(
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        name=asked["name"],
        kind=kind,
        endpoint=asked.get("endpoint"),
        auth_token=auth_token,
        is_default=asked.get("isDefault", False),
        enabled=asked.get("enabled", True),
        config=asked.get("config", {}),
    )


def _visible(principal: Principal, target_id: str) -> ExecutionTarget:
    row = visible_targets(Caller.of(principal)).filter(id=target_id).first()
    if row is None:
        raise TargetNotFound(f"There is no target {target_id[:64]!r} here.")
    return row


def _own(principal: Principal, target_id: str) -> ExecutionTarget:
    row = _visible(principal, target_id)
    if row.workspace_id is None or row.is_local:
        raise Forbidden(
            "It is not the workspace's own; an operator changes it at the admin site.",
            details={"targetId": row.id},
        )
    return row
