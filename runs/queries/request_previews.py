"""What requests that are no tool calls would do: change, delete or probe a target, complete an
upload. For a person who decides on one; its arguments alone have only ids.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from typing import Any

from django.utils.translation import gettext as _

from artifacts.models import ArtifactUpload
from decisions.authorization.call_information import CallPreview
from decisions.authorization.policy_rules import list_rules_for_target
from decisions.models import Decision, Token
from runners.models import ExecutionTarget, TargetKind
from runners.targets.services import basis_of_change
from runners.workspace.writing.proposed_change import unified_diff

_Args = Mapping[str, Any]


def is_request(decision: Decision) -> bool:
    """Return whether a decision is about such a request, and no tool of a runner with its name."""
    is_tool_call = decision.run_id is not None or decision.target_id is not None
    return decision.tool in _PREVIEWS and not is_tool_call


def basis_of_request(tool: str, args: _Args) -> str:
    """Return the digest of the rows that a request works on, as they are now."""
    if tool == "complete_artifact_upload":
        return _upload_digest(_upload(args))
    return basis_of_change(tool, str(args["targetId"]))


def previews_of_request(tool: str, args: _Args) -> Iterator[CallPreview]:
    """Yield what a request would do; the first one has the basis of all."""
    yield from _PREVIEWS[tool](args, basis_of_request(tool, args))


def caller_name(principal_id: str) -> str:
    """Return a principal id, of a token with its name."""
    kind, _colon, token_id = principal_id.partition(":")
    tokens = Token.objects.filter(id=token_id) if kind == "token" else Token.objects.none()
    name = tokens.values_list("name", flat=True).first()
    if not name:
        return principal_id
    return _("token %(name)s (%(id)s)") % {"name": name, "id": token_id}


def _delete(args: _Args, basis: str) -> Iterator[CallPreview]:
    row = _target(args)
    yield CallPreview(_("Deleted target"), _text(_lines_of(row)), _about(row), basis=basis)
    rules = [
        f"{rule.verdict} {rule.tool}, scope {rule.scope} {rule.scope_id}".rstrip()
        + f" ({rule.key} v{rule.version}): {rule.reason}"
        for rule in list_rules_for_target(str(args["targetId"]))
    ]
    yield CallPreview(
        _("Retired policy rules"), "\n".join(rules), _("rules: %(count)s") % {"count": len(rules)}
    )


def _replace(args: _Args, basis: str) -> Iterator[CallPreview]:
    row = _target(args)
    before = _lines_of(row)
    new_token = "set anew" if args.get("authToken") else "none"
    after = {
        **before,
        "name": args.get("name", ""),
        "endpoint": args.get("endpoint") or "none",
        "token": new_token if "authToken" in args else before.get("token", "none"),
        "default": _yes(args.get("isDefault", False)),
        "enabled": _yes(args.get("enabled", True)),
        "config": _json(args.get("config", {})),
    }
    text = unified_diff(str(args["targetId"]), _text(before), _text(after))
    yield CallPreview(_("Changed target"), text, _about(row), is_diff=True, basis=basis)


def _probe(args: _Args, basis: str) -> Iterator[CallPreview]:
    row = _target(args)
    about = _("%(about)s; GET /health and GET /tools are sent to it") % {"about": _about(row)}
    yield CallPreview(_("Probed target"), _text(_lines_of(row)), about, basis=basis)


def _complete(args: _Args, basis: str) -> Iterator[CallPreview]:
    upload = _upload(args)
    if upload is None:
        yield CallPreview(_("Upload"), "", _("it does not exist any more"), basis=basis)
        return
    lines = {
        "name": upload.name,
        "kind": "upload of a caller, of no run",
        "size": f"{upload.size_bytes} bytes",
        "sha256": upload.sha256,
        "media type": upload.mime_type,
        "announced by": caller_name(upload.principal_id),
        "announced at": upload.created_at.astimezone(UTC).isoformat(timespec="seconds"),
        "artifact": upload.artifact_id or "none yet",
    }
    about = _("bytes of exactly this size and digest become the artifact, others are refused")
    yield CallPreview(_("Upload"), _text(lines), about, basis=basis)


_PREVIEWS: Mapping[str, Callable[[_Args, str], Iterator[CallPreview]]] = {
    "delete_target": _delete,
    "replace_target": _replace,
    "probe_target": _probe,
    "complete_artifact_upload": _complete,
}


def _target(args: _Args) -> ExecutionTarget | None:
    return ExecutionTarget.objects.filter(id=args["targetId"]).first()


def _upload(args: _Args) -> ArtifactUpload | None:
    return ArtifactUpload.objects.filter(id=args["uploadId"]).first()


def _upload_digest(upload: ArtifactUpload | None) -> str:
    if upload is None:
        return "absent"
    content = upload.name, upload.mime_type, upload.sha256, upload.size_bytes
    values = [upload.id, upload.workspace_id, *content, upload.artifact_id]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def _about(row: ExecutionTarget | None) -> str:
    if row is None:
        return _("it does not exist any more")
    if row.kind == TargetKind.DOCKER_RUNNER:
        about = _("%(count)s tools, version %(version)s")
        return about % {"count": len(row.catalogue), "version": row.version}
    return _("a folder, version %(version)s") % {"version": row.version}


def _lines_of(row: ExecutionTarget | None) -> dict[str, str]:
    if row is None:
        return {}
    return {
        "kind": row.kind,
        "name": row.name,
        "workspace": row.workspace_id or "all of the tenant",
        "endpoint": row.endpoint or "none",
        "token": "none" if row.sealed_auth_token is None else "set",
        "default": _yes(row.is_default),
        "enabled": _yes(row.enabled),
        "config": _json(row.config),
    }


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _text(lines: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in lines.items())
