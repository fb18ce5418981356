"""A workspace: the folder that its tools work in, and the policy that restricts them (S4 §6)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class WorkspacePolicy:
    """What tools may do in a workspace: the settings, narrowed by the policy file in its root.

    Attributes:
        forbidden: names that no path component may have, in any case; `.env` also forbids `.env.*`.
        max_read_bytes: largest file that is read or written.
        write_requires_diff: a write needs a preview of the same content first.
        snapshot_retention: snapshots kept per file; the newest is always kept.
        developer: `execute_command` and `browser_action` may be called.
        allowed_commands: package.json scripts that may be run.
        allowed_hosts: hosts whose pages may be opened.
        own_ports: ports of this service on this machine; no page is opened there.
        preview_url: address of the project's local preview server.
        language: ZH or EN, for diagnostics and hints.
    """

    forbidden: tuple[str, ...] = (".git", "node_modules", ".env")
    max_read_bytes: int = 5 * 1024 * 1024
    write_requires_diff: bool = True
    snapshot_retention: int = 20
    developer: bool = False
    allowed_commands: tuple[str, ...] = ("dev", "build", "lint")
    command_timeout_ms: int = 30_000
    allowed_hosts: tuple[str, ...] = ("localhost", "127.0.0.1")
    browser_timeout_ms: int = 15_000
    own_ports: tuple[int, ...] = (8000,)
    preview_url: str = "http://127.0.0.1:3001"
    language: str = "ZH"


@dataclass(frozen=True, slots=True)
class ProjectWorkspace:
    """A project folder as one caller's tools see it.

    Attributes:
        target_id: the target of kind workspace that names the folder.
        root: the folder's absolute path.
        state: folder for its snapshots, previews, locks and idempotency keys; outside of the root.
        principal_id: the caller; a preview allows only the same caller to write.
        offered_tools: names of the tools that the caller's transport offers.
        policy_error: why the policy file is invalid, else empty; nothing is allowed then.
    """

    target_id: str
    root: Path
    state: Path
    policy: WorkspacePolicy
    principal_id: str
    offered_tools: tuple[str, ...] = ()
    policy_error: str = ""
