"""Runners as targets: which one a call goes to, with what, and whether it answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db import transaction

from decisions.audit import Deed, record
from decisions.errors import PolicyDenied, TargetNotFound
from decisions.keys import unseal
from runners.errors import RunnerFailed
from runners.gateway.wanted import PROBE_S, TIMEOUT_MS, RunnerTarget
from runners.loop import get_loop
from runners.models import ExecutionTarget, TargetKind
from runners.targets import Caller, choose_target

if TYPE_CHECKING:
    from runners.gateway.probe import Probed

_PATIENCE_S = PROBE_S + 10  # for a loop that is busy


def find_runner(caller: Caller, target_id: str | None = None) -> ExecutionTarget:
    """Return the runner that a call goes to: the one it names, else the default of its workspace or
    tenant.

    Raises:
        TargetNotFound: It is not there, is another's, or there is no default.
        PolicyDenied: It is disabled.
    """
    target = choose_target(caller, TargetKind.DOCKER_RUNNER, target_id)
    if target is None:
        raise TargetNotFound("No docker-runner is set up for this workspace; name a targetId.")
    if not target.enabled:
        raise PolicyDenied(
            f"The target {target.name!r} is disabled.", details={"targetId": target.id}
        )
    return target


def runner_of(target: ExecutionTarget, caller: Caller) -> RunnerTarget:
    """Return a target as the gateway calls it, its token in the clear.

    Raises:
        RunnerFailed: The token was sealed under a key that is not configured any more.
    """
    return RunnerTarget(
        target_id=target.id, tenant_id=target.tenant_id, kind=target.kind,
        workspace_id=target.workspace_id or caller.workspace_id, endpoint=endpoint_of(target),
        auth_token=_token_of(target), timeout_ms=target.config.get("timeoutMs", TIMEOUT_MS),
    )  # fmt: skip


def endpoint_of(target: ExecutionTarget) -> str | None:
    """Return where a runner listens: the target's endpoint, else that of its config."""
    return target.endpoint or target.config.get("endpoint")


def probe_target(target: ExecutionTarget, *, actor: str) -> ExecutionTarget:
    """Ask a runner for its health and keep what was found, audited; at most a few seconds.
    Commits.
    """
    found = _probed(target)
    now = datetime.now(UTC)
    columns: dict[str, object] = {"probed_at": now, "probe_error": found.error}
    if found.is_up:
        columns["last_seen_at"] = now
    told = {"isUp": found.is_up, "status": found.status, "tookMs": found.took_ms}
    place = target.tenant_id, target.workspace_id or ""
    with transaction.atomic():
        # Past save(): that it was asked is no change of what it is.
        ExecutionTarget.objects.filter(id=target.id).update(**columns)
        error = {"error": found.error} if found.error else {}
        record(Deed("target.probed", actor, "target", target.id, *place, {**told, **error}))
    for name, value in columns.items():
        setattr(target, name, value)
    return target


def _probed(target: ExecutionTarget) -> Probed:
    # Late: no door pays for an HTTP client at its start.
    from runners.gateway.probe import Probed, probe_runner

    try:
        asked = probe_runner(endpoint_of(target), _token_of(target))
    except RunnerFailed as failed:
        return Probed(None, 0, failed.message)
    return get_loop().submit(asked).result(_PATIENCE_S)


def _token_of(target: ExecutionTarget) -> str | None:
    if target.sealed_auth_token is None:
        return None
    try:
        return unseal(bytes(target.sealed_auth_token)).decode()
    except ValueError:
        raise RunnerFailed(
            "The target's token was sealed under a key that is not configured any more; set it"
            " anew.",
            details={"reason": "connect", "effect": "none", "targetId": target.id},
        ) from None
