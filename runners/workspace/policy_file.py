"""The policy file `continuity.workspace.json` in a workspace's root narrows the settings (S4 §6).

Its shape: `{"contractVersion": "1.0.0", "mode": "cline", "policies": {…}}`. Values that would widen
the settings have no effect. An invalid file disables every tool until it is corrected, because
ignoring it could drop a restriction that its author meant to set. Only `get_runtime_info` still
works then: it changes nothing, and reports a policy that allows nothing.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, ValidationError

from runners.workspace.errors import PathNotFound, PolicyViolation, WorkspaceFailed
from runners.workspace.files.paths import POLICY_FILE, display_path
from runners.workspace.files.sandbox import Sandbox, decode_text
from runners.workspace.workspace import WorkspacePolicy

FILE_BYTES = 65_536
VERSION = r"^1\.0\.(0|[1-9][0-9]*)$"  # a new minor version may change the rules (S4 §0.1)
DATA_DIRECTORY = ".continuity"
Name = Annotated[str, Field(strict=True, min_length=1, max_length=255, pattern=r"^[^/\\\x00]+$")]
Count = Annotated[int, Field(strict=True, ge=0)]


class _Policies(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sandboxRoot: StrictStr = Field(default=".", pattern=r"^(\.|\$\{projectRoot\})$")  # noqa: N815
    forbiddenDirs: list[Name] = Field(default=[], max_length=1000)  # noqa: N815
    maxReadBytes: Annotated[int, Field(strict=True, ge=1)] | None = None  # noqa: N815
    writeRequiresDiff: StrictBool = False  # noqa: N815
    maxAutoFix: Count | None = None  # noqa: N815  # no tool reads it
    batchMaxLines: Count | None = None  # noqa: N815  # no tool reads it
    allowedCommands: list[Name] | None = None  # noqa: N815
    browserAllowedHosts: list[Name] | None = None  # noqa: N815


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    contractVersion: StrictStr = Field(default="1.0.0", pattern=VERSION)  # noqa: N815
    mode: StrictStr = ""
    policies: _Policies = Field(default_factory=_Policies)


def effective_policy(base: WorkspacePolicy, root: Path) -> WorkspacePolicy:
    """Return the settings, narrowed by the policy file if the workspace has one.

    The default name of this service's data directory is forbidden in every workspace.

    Raises:
        PolicyViolation: The file exists but cannot be read or is invalid.
        PathNotFound, DiskFailed: The root itself cannot be opened.
    """
    defaults = replace(base, forbidden=_union(base.forbidden, (DATA_DIRECTORY,)))
    with Sandbox(root, ()) as sandbox:
        try:
            data = sandbox.read(POLICY_FILE, limit=FILE_BYTES)
        except PathNotFound:
            return defaults
        except WorkspaceFailed as failed:
            raise _refusal(failed.message, base) from None
    return _narrowed(defaults, _read(data, base).policies)


def deny_all_policy(base: WorkspacePolicy) -> WorkspacePolicy:
    """Return the policy for a workspace with an invalid policy file: nothing is allowed."""
    return replace(
        base,
        forbidden=_union(base.forbidden, (DATA_DIRECTORY,)),
        developer=False,
        write_requires_diff=True,
        allowed_commands=(),
        allowed_hosts=(),
    )


def _read(data: bytes, base: WorkspacePolicy) -> _File:
    try:
        content = json.loads(decode_text(data, POLICY_FILE), object_pairs_hook=_unique_keys)
        return _File.model_validate(content)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "the whole file"
        raise _refusal(f"{field}: {first['msg']}", base) from None
    except (ValueError, RecursionError, WorkspaceFailed) as exc:
        raise _refusal(str(exc) or "not valid JSON", base) from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object; reject duplicate keys, since it is unclear which one should apply."""
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key appears twice")
    return content


def _narrowed(base: WorkspacePolicy, policies: _Policies) -> WorkspacePolicy:
    return replace(
        base,
        forbidden=_union(base.forbidden, policies.forbiddenDirs),
        max_read_bytes=_minimum(base.max_read_bytes, policies.maxReadBytes),
        write_requires_diff=base.write_requires_diff or policies.writeRequiresDiff,
        allowed_commands=_intersection(base.allowed_commands, policies.allowedCommands),
        allowed_hosts=_intersection(base.allowed_hosts, policies.browserAllowedHosts),
    )


def _union(names: tuple[str, ...], more: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*names, *more)))


def _intersection(names: tuple[str, ...], allowed: list[str] | None) -> tuple[str, ...]:
    return names if allowed is None else tuple(name for name in names if name in allowed)


def _minimum(limit: int, own_limit: int | None) -> int:
    return limit if own_limit is None else min(limit, own_limit)


def _refusal(reason: str, base: WorkspacePolicy) -> PolicyViolation:
    hint = (
        f"Correct {POLICY_FILE} in the workspace's root, or remove it."
        if base.language == "EN"
        else f"请修正工作区根目录中的 {POLICY_FILE}，或将其删除。"
    )
    return PolicyViolation(
        f"{POLICY_FILE} is invalid: {display_path(reason)}",
        hint=hint,
        details={"path": POLICY_FILE},
    )
