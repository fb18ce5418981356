"""A developer's project for tests of workspace tools: a folder, a policy and tool calls."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runners.browser.session.session import OpenBrowserSession
from runners.invocation.event_loop import LoopThread
from runners.invocation.invoke import invoke
from runners.tools.base import ToolCall, ToolContext, ToolResult
from runners.workspace.workspace import ProjectWorkspace, WorkspacePolicy


@dataclass
class Project:
    """A folder with package.json and scenes, and functions that call tools on it.

    Attributes:
        policy: changes to the shipped policy; developer mode is on.
        saved: the artifacts that tools saved: kind, MIME type, bytes.
    """

    root: Path
    loop: LoopThread | None = None
    browser: OpenBrowserSession | None = None
    policy: dict[str, Any] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    saved: list[tuple[str, str, bytes]] = field(default_factory=list)

    def scripts(self, **scripts: str) -> None:
        """Write package.json with these scripts."""
        values = {"name": "game", "version": "1.2.3", "scripts": scripts}
        (self.root / "package.json").write_text(json.dumps(values))

    def write(self, path: str, data: str | bytes = "") -> Path:
        """Write a file and create its parent folders; return its path."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        return file

    def call(self, tool: str, *, seconds: float = 90.0, **args: Any) -> ToolResult:
        """Call a tool, as a run's step does."""
        invocation = invoke(ToolCall(tool, args), self.context(seconds))
        return (
            asyncio.run(invocation)
            if self.loop is None
            else self.loop.submit(invocation).result(150)
        )

    def output(self, tool: str, **args: Any) -> dict[str, Any]:
        """Call a tool that must succeed and return its output."""
        result = self.call(tool, **args)
        assert result.ok, result.error
        return dict(result.output or {})

    def error(self, tool: str, **args: Any) -> dict[str, Any]:
        """Call a tool that must fail and return its error."""
        result = self.call(tool, **args)
        assert not result.ok, result.output
        return dict(result.error or {})

    def code(self, tool: str, **args: Any) -> str:
        """Call a tool that must fail and return the error's code."""
        return str(self.error(tool, **args)["errorCode"])

    def context(self, seconds: float = 90.0) -> ToolContext:
        """Return the context of a tool call with this timeout."""
        values = {"developer": True, "language": "EN", **self.policy}
        policy = WorkspacePolicy(**values)
        state = self.root.parent / "state"
        return ToolContext(
            run_id="run_test",
            trust="local",
            deadline=time.monotonic() + seconds,
            save_artifact=self._save,
            emit=lambda type_, data: None,
            browser=self.browser,
            workspace=ProjectWorkspace("target_test", self.root, state, policy, "local"),
            mask=self._mask,
        )

    def _mask(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text

    async def _save(self, data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
        self.saved.append((kind, mime_type, data))
        return f"art_{len(self.saved)}"
