"""The file `continuity.workspace.json` in a workspace's root: it may narrow the settings (S4 §6).

Its shape is S4's: `{"contractVersion": "1.0.0", "mode": "cline", "policies": {…}}`. What it asks
for beyond the settings has no effect; what it says wrongly stops every tool until it is mended, for
a rule that nobody understood must not be taken for none. Only `get_runtime_info`, which does
nothing but tell the policy, goes on, and tells of a closed one.
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
VERSION = r"^1\.0\.(0|[1-9][0-9]*)$"  # a second number that rises means other rules (S4 §0.1)
DATA_DIRECTORY = ".continuity"
Name = Annotated[str, Field(strict=True, min_length=1, max_length=255, pattern=r"^[^/\\\x00]+$")]
Count = Annotated[int, Field(strict=True, ge=0)]


class _Policies(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sandboxRoot: StrictStr = Field(default=".", pattern=r"^(\.|\$\{projectRoot\})$")  # noqa: N815
    forbiddenDirs: list[Name] = Field(default=[], max_length=1000)  # noqa: N815
    maxReadBytes: Annotated[int, Field(strict=True, ge=1)] | None = None  # noqa: N815
    writeRequiresDiff: StrictBool = False  # noqa: N815
    maxAutoFix: Count | None = None  # noqa: N815
    batchMaxLines: Count | None = None  # noqa: N815
    allowedCommands: list[Name] | None = None  # noqa: N815
    browserAllowedHosts: list[Name] | None = None  # noqa: N815


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    contractVersion: StrictStr = Field(default="1.0.0", pattern=VERSION)  # noqa: N815
    mode: StrictStr = ""
    policies: _Policies = Field(default_factory=_Policies)


def effective_policy(base: WorkspacePolicy, root: Path) -> WorkspacePolicy:
    """Return the settings as the workspace's own file narrows them.

    Our data directory's usual name is forbidden in every workspace.

    Raises:
        PolicyViolation: The file is there and cannot be read or understood.
        PathNotFound, DiskFailed: The root itself cannot be opened.
    """
    own_shut = replace(base, forbidden=_united(base.forbidden, (DATA_DIRECTORY,)))
    with Sandbox(root, ()) as sandbox:
        try:
            data = sandbox.read(POLICY_FILE, limit=FILE_BYTES)
        except PathNotFound:
            return own_shut
        except WorkspaceFailed as failed:
            raise _refusal(failed.message, base) from None
    return _narrowed(own_shut, _read(data, base).policies)


def deny_all_policy(base: WorkspacePolicy) -> WorkspacePolicy:
    """Return what holds where the workspace's own file cannot be followed: nothing is allowed."""
    return replace(
        base,
        forbidden=_united(base.forbidden, (DATA_DIRECTORY,)),
        developer=False,
        write_requires_diff=True,
        allowed_commands=(),
        allowed_hosts=(),
    )


def _read(data: bytes, base: WorkspacePolicy) -> _File:
    try:
        said = json.loads(decode_text(data, POLICY_FILE), object_pairs_hook=_once)
        return _File.model_validate(said)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise _refusal(f"{place}: {first['msg']}", base) from None
    except (ValueError, RecursionError, WorkspaceFailed) as exc:
        raise _refusal(str(exc) or "it is no JSON", base) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that is said twice: which one holds would be a guess."""
    said = dict(pairs)
    if len(said) != len(pairs):
        raise ValueError("a key is there twice")
    return said


def _narrowed(base: WorkspacePolicy, said: _Policies) -> WorkspacePolicy:
    return replace(
        base,
        forbidden=_united(base.forbidden, said.forbiddenDirs),
        max_read_bytes=_least(base.max_read_bytes, said.maxReadBytes),
        write_requires_diff=base.write_requires_diff or said.writeRequiresDiff,
        max_auto_fix=_least(base.max_auto_fix, said.maxAutoFix),
        batch_max_lines=_least(base.batch_max_lines, said.batchMaxLines),
        allowed_commands=_both(base.allowed_commands, said.allowedCommands),
        allowed_hosts=_both(base.allowed_hosts, said.browserAllowedHosts),
    )


def _united(some: tuple[str, ...], more: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*some, *more)))


def _both(some: tuple[str, ...], named: list[str] | None) -> tuple[str, ...]:
    return some if named is None else tuple(one for one in some if one in named)


def _least(limit: int, said: int | None) -> int:
    return limit if said is None else min(limit, said)


def _refusal(why: str, base: WorkspacePolicy) -> PolicyViolation:
    hint = (
        f"Mend {POLICY_FILE} in the workspace's root, or remove it."
        if base.language == "EN"
        else f"请修正工作区根目录中的 {POLICY_FILE}，或将其删除。"
    )
    return PolicyViolation(
        f"{POLICY_FILE} cannot be followed: {display_path(why)}",
        hint=hint,
        details={"path": POLICY_FILE},
    )
