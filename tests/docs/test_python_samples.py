"""Each Python sample of README and docs does what its text says, as its reader would copy it."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from runners.llm import gateway
from runners.llm.base import LlmSettings, Message
from runners.llm.gateway import Gateway
from runners.tools import registry
from runners.workspace.files.sandbox import Sandbox, decode_text
from runs.task_templates import registry as templates
from tests.decisions.chat.test_answers import RISKY
from tests.docs.samples import python_sample, samples
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.rest.rest import json_of

LINKS = "<title>Links</title><a href=/a>A</a> <a href=/b>B</a> <a>no link</a><h1>First</h1><p>x"
TESTED = {
    "docs/adding-a-tool.md",
    "docs/adding-a-template.md",
    "docs/adding-a-model-provider.md",
    "docs/continuity.md",
    "docs/webhooks.md",  # by tests/runs/webhooks/test_docs_snippet.py
    "docs/workspace-files.md",
}


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """Save a document's sample as a module, import it, and forget it after the test."""
    imported: list[str] = []
    # Not syspath_prepend: it empties caches that threads of other tests may be filling.
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def save(document: str, name: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(python_sample(document))
        imported.append(name)
        return importlib.import_module(name)

    yield save
    for name in imported:
        sys.modules.pop(name, None)
        registry._tools.pop(name, None)
        templates._registered.pop(name, None)


def test_each_document_with_python_has_a_test() -> None:
    assert {sample.document for sample in samples("python")} == TESTED


def test_the_tool_counts_the_links_of_a_page(
    saved: Callable[..., ModuleType], reader: Reader, page_server: PageServer
) -> None:
    saved("docs/adding-a-tool.md", "count_links")
    url = page_server.add("/links", LINKS)
    result = reader.call("count_links", url=url)
    assert result.output == {"url": url, "links": 2}
    refused = replace(reader, trust="remote").call("count_links", url=url)
    assert (refused.error or {})["errorCode"] == "TRUST_LEVEL_NOT_ALLOWED"


@pytest.mark.usefixtures("background_worker")
def test_the_template_returns_the_headings_of_a_page(
    saved: Callable[..., ModuleType], api: httpx.Client, page_server: PageServer
) -> None:
    templates.list_templates()  # the registry is full before the module adds to it
    saved("docs/adding-a-template.md", "headings")
    body = {
        "templateId": "headings",
        "inputs": {"url": page_server.add("/links", LINKS)},
        "options": {"mode": "sync"},
    }
    run = json_of(api.post("/api/v1/runs", json=body))
    assert (run["status"], run["result"]) == ("succeeded", {"headings": ["First"]})


def test_the_model_provider_answers_a_turn_of_the_gateway(
    saved: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    saved("docs/adding-a-model-provider.md", "echo")
    monkeypatch.setitem(gateway._PROVIDERS, "echo", ("echo", "Echo", {}))
    settings: Any = replace(LlmSettings(model="any"), provider="echo")  # type: ignore[arg-type]

    async def turn() -> list[Any]:
        opened = Gateway(settings)
        stream = opened.stream_chat(messages=[Message("user", "Hello")], tools=[])
        parts = [part async for part in stream]
        await opened.close()
        return parts

    first, done = asyncio.run(turn())
    assert (first.content, done.stop, done.content) == ("Hello", "stop", "Hello")


def test_the_responder_writes_the_replies(
    saved: Callable[..., ModuleType], api: httpx.Client, settings: Any
) -> None:
    saved("docs/continuity.md", "friendly")
    settings.CONTINUITY_RESPONDER = "friendly.Friendly"
    answer = json_of(api.post("/api/v1/chat", json=RISKY))
    assert answer["response"].startswith("Hold on: ")


def test_the_sandbox_replaces_a_file_that_is_as_it_was_read(tmp_path: Path) -> None:
    path = tmp_path / "game/scene/start.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"old")
    names = {"Sandbox": Sandbox, "decode_text": decode_text, "root": tmp_path}
    names |= {"old": b"old", "new": b"new"}
    exec(python_sample("docs/workspace-files.md"), names)  # noqa: S102  (what readers copy)
    assert (names["text"], path.read_bytes()) == ("old", b"new")
