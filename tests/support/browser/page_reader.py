"""Call browser tools in tests as the engine does, with a session on an event loop thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from runners.browser.session.session import OpenBrowserSession
from runners.browser.tools.read_page import ReadPage, read_page
from runners.errors import ToolFailed
from runners.invocation.event_loop import LoopThread
from runners.invocation.invoke import invoke
from runners.tools.base import ToolCall, ToolContext, ToolResult
from runners.trust_level import TrustLevel

Answer = TypeVar("Answer")


@dataclass
class Reader:
    """Call tools on a session, as the engine does, and collect the artifacts that they save."""

    loop: LoopThread
    session: OpenBrowserSession
    trust: TrustLevel = "local"
    saved: list[tuple[str, str, bytes]] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)
    mask: Callable[[str], str] = str
    uploads: dict[str, bytes] = field(default_factory=dict)

    def __call__(self, url: str, *, seconds: float = 40.0, **options: Any) -> Mapping[str, Any]:
        return self.wait(self.reading(url, seconds=seconds, **options))

    async def reading(
        self, url: str, *, seconds: float = 40.0, **options: Any
    ) -> Mapping[str, Any]:
        """Read a page; awaited by a coroutine on the loop."""
        context = self.context(seconds)
        return await read_page.function(ReadPage.model_validate({"url": url, **options}), context)

    def call(self, name: str, *, seconds: float = 80.0, **args: Any) -> ToolResult:
        """Call a tool on the session, as a run's step does; the first call starts the browser."""
        context = self.context(seconds)
        return self.wait(invoke(ToolCall(name, args), context))

    def context(self, seconds: float = 40.0) -> ToolContext:
        """Return the context of a tool call with this timeout."""
        return ToolContext(
            run_id="run_test",
            trust=self.trust,
            deadline=time.monotonic() + seconds,
            save_artifact=self._save,
            emit=lambda type_, data: None,
            browser=self.session,
            secrets=self.secrets,
            mask=self.mask,
            read_upload=self._read_upload,
        )

    def failure(self, url: str, **options: Any) -> ToolFailed:
        """Read a page whose reading must fail, and return the error."""
        with pytest.raises(ToolFailed) as caught:
            self(url, **options)
        return caught.value

    def elements(self, url: str, **options: Any) -> list[dict[str, Any]]:
        """Read a page and return its elements."""
        found: list[dict[str, Any]] = self(url, **options)["pageInfo"]["elements"]
        return found

    def text(self, url: str, **options: Any) -> str:
        """Read a page and return its sections as one text, each heading on a line of its own."""
        sections = self(url, **options)["content"]["sections"]
        return "\n".join(f"{'#' * s['level']} {s['heading']}\n{s['text']}" for s in sections)

    def wait(self, work: Coroutine[Any, Any, Answer], seconds: float = 90.0) -> Answer:
        """Run a coroutine on the loop and return what it returns."""
        return self.loop.submit(work).result(seconds)

    async def _save(self, data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
        self.saved.append((kind, mime_type, data))
        return f"art_{len(self.saved)}"

    async def _read_upload(
        self, *, artifact_id: str | None, path: str | None, limit: int
    ) -> tuple[str, bytes]:
        name = str(artifact_id or path)
        return name, self.uploads[name]
