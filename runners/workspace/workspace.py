"""The folder that workspace tools work in, and what its owner lets them do there (S4 §6)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class WorkspacePolicy:
    """What tools may do in a workspace: the settings, narrowed by the file in its root.

    Attributes:
        forbidden: names that no component of a path may have, whatever their case; `.env.*` is
            forbidden along with `.env`.
        max_read_bytes: of one file, read or written.
        write_requires_diff: a write needs a preview of the same content.
        snapshot_retention: snapshots kept of one file, at least the newest.
        deleted_snapshots, deleted_snapshot_bytes: of all files that are gone together; of each for
            deleted_snapshot_days.
        developer: `execute_command` and `browser_action` may be called.
        allowed_commands: names of package.json's scripts that may be run.
        allowed_hosts: hosts that pages may be opened on.
        own_ports: where we ourselves listen on this machine; no page is opened there.
        preview_url: where the project's local preview server listens.
        max_auto_fix, batch_max_lines: bind the agent loop.
        language: ZH or EN, of diagnostics and hints.
    """

    forbidden: tuple[str, ...] = (".git", "node_modules", ".env")
    max_read_bytes: int = 5 * 1024 * 1024
    write_requires_diff: bool = True
    snapshot_retention: int = 20
    deleted_snapshots: int = 1000
    deleted_snapshot_bytes: int = 256 * 1024 * 1024
    deleted_snapshot_days: int = 90
    developer: bool = False
    allowed_commands: tuple[str, ...] = ("dev", "build", "lint")
    command_timeout_ms: int = 30_000
    allowed_hosts: tuple[str, ...] = ("localhost", "127.0.0.1")
    browser_timeout_ms: int = 15_000
    own_ports: tuple[int, ...] = (8000,)
    preview_url: str = "http://127.0.0.1:3001"
    max_auto_fix: int = 1
    batch_max_lines: int = 2000
    language: str = "ZH"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder as one caller's tools see it.

    Attributes:
        target_id: the target of kind workspace that names it.
        root: its absolute path.
        state: our folder for its snapshots, previews and keys; outside of the root.
        principal_id: who calls; previews are remembered for each caller.
        offered: names of the tools that the caller's door offers.
        trouble: why the file in its root cannot be followed; nothing is allowed there then.
    """

    target_id: str
    root: Path
    state: Path
    policy: WorkspacePolicy
    principal_id: str
    offered_tools: tuple[str, ...] = ()
    policy_error: str = ""
