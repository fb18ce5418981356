"""Runners as targets: choose the runner of a call, prepare its connection data, probe it."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.foundation.errors import InvalidInput, PolicyDenied, TargetNotFound
from decisions.foundation.security.masking import Masker
from decisions.foundation.security.sealed_columns import unseal_column
from runners.errors import RunnerFailed
from runners.gateway.request import PROBE_S, TIMEOUT_MS, RunnerTarget
from runners.invocation.event_loop import get_loop
from runners.models import ExecutionTarget, TargetKind
from runners.targets.published_tools import parse_published_tools
from runners.targets.targets import Caller, choose_target, endpoint_of

if TYPE_CHECKING:
    from runners.gateway.probe import ProbeResult, PublishedTools

_PROBE_WAIT_S = 2 * PROBE_S + 10  # the event loop may be busy


def find_runner(caller: Caller, target_id: str | None) -> ExecutionTarget:
    """Return the runner of a call: the one it names, else the default of its workspace or tenant.

    Raises:
        TargetNotFound: It does not exist, belongs to another workspace, or there is no default.
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
    """Return a target as the gateway needs it, with its decrypted token.

    Raises:
        RunnerFailed: The token was encrypted with a key that is no longer configured.
    """
    return RunnerTarget(
        target_id=target.id,
        tenant_id=target.tenant_id,
        kind=target.kind,
        workspace_id=target.workspace_id or caller.workspace_id,
        endpoint=endpoint_of(target),
        auth_token=_token_of(target),
        timeout_ms=target.config.get("timeoutMs", TIMEOUT_MS),
        falls_back=target.config.get("onUnreachable") == "fallback_local",
        opened_address=target.opened_address,
    )


def probe_target(target: ExecutionTarget, *, actor: str) -> ExecutionTarget:
    """Request a runner's health and its tools, store the result and audit it. Commits.

    Takes a few seconds at most. If the tools cannot be read, those of the last probe are kept.
    """
    found, published = _probed(target)
    now = datetime.now(UTC)
    columns: dict[str, Any] = {"probed_at": now, "probe_error": found.error}
    if found.is_up:
        columns |= {"last_seen_at": now, **_catalogue(published, now)}
    data: dict[str, Any] = {"isUp": found.is_up, "status": found.status, "tookMs": found.took_ms}
    if "catalogue" in columns:
        data["tools"] = len(columns["catalogue"])
    scope = target.tenant_id, target.workspace_id or ""
    with transaction.atomic():
        # Not save(): a probe does not change the target's version.
        ExecutionTarget.objects.filter(id=target.id).update(**columns)
        errors = {"error": found.error, "toolsError": columns.get("catalogue_error")}
        data |= {name: error for name, error in errors.items() if error}
        record(AuditEvent("target.probed", actor, "target", target.id, *scope, data))
    for name, value in columns.items():
        setattr(target, name, value)
    return target


def _catalogue(published: PublishedTools, now: datetime) -> dict[str, Any]:
    """Return the columns with a runner's published tools."""
    error = published.error
    if error is None:
        try:
            offers = parse_published_tools(published.body) if published.body else []
        except InvalidInput as wrong:
            error = wrong.message[:300]
        else:
            return {"catalogue": offers, "catalogue_at": now, "catalogue_error": None}
    return {"catalogue_error": error}


def _probed(target: ExecutionTarget) -> tuple[ProbeResult, PublishedTools]:
    # Imported here so that processes that probe no runner do not load the HTTP client.
    from runners.gateway.probe import (
        ProbeResult,
        PublishedTools,
        fetch_published_tools,
        probe_runner,
    )

    async def probe(
        endpoint: str | None, auth_token: str | None
    ) -> tuple[ProbeResult, PublishedTools]:
        opened = target.opened_address
        found = await probe_runner(endpoint, auth_token, opened)
        if endpoint is None or not found.is_up:
            return found, PublishedTools()
        published = await fetch_published_tools(endpoint, auth_token, opened)
        masker = Masker([auth_token] if auth_token else ())  # a runner may send the token back
        return found, replace(published, body=masker.data(published.body, "application/json"))

    try:
        probing = probe(endpoint_of(target), _token_of(target))
    except RunnerFailed as failed:
        return ProbeResult(None, 0, failed.message), PublishedTools()
    return get_loop().submit(probing).result(_PROBE_WAIT_S)


async def close_connections() -> None:
    """Close the running loop's connections to runners, if it has any, when its server stops."""
    if "runners.gateway.connections" in sys.modules:
        from runners.gateway.connections import close_pool  # not loaded unless used

        await close_pool()


def _token_of(target: ExecutionTarget) -> str | None:
    if target.sealed_auth_token is None:
        return None
    try:
        return unseal_column(target, "sealed_auth_token").decode()
    except ValueError:
        raise RunnerFailed(
            "The target's token was encrypted with a key that is no longer configured. Set the"
            " token again.",
            details={"reason": "connect", "effect": "none", "targetId": target.id},
        ) from None
