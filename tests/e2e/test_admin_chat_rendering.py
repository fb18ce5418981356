"""Test what a task's page displays: rendered Markdown, each tool once, one picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.conversations.log import append_events
from runs.lifecycle.changes import NewEvent
from runs.models import Run
from runs.worker.worker import WorkerProcess
from tests.e2e.test_admin_chat import open_task
from tests.support.admin.live_pages import save_screenshot
from tests.support.admin.visitor import Visitor

MakeTask = Callable[..., str]
Background = Callable[[Callable[[], object]], Any]
MARKDOWN = """# Hours

Open **Mon-Fri 9-18** and *Sat* `10-14`, 2 * 3 * 4, [more](https://example.com/x).

1. the **desk**
2. the hall
   on the left

- a <b>bold</b> one

```html
<img src=x onerror="window.ran=1">
  **as it is**
```

| day | hours |
|-----|------:|
| Mon | **9** \\| 18 |
| <i>Sat</i> |"""


def evaluate_on_answer(visitor: Visitor, script: str) -> Any:
    return visitor.do(
        visitor.page.eval_on_selector("[data-role=assistant] .chat-prose:last-of-type", script)
    )


@pytest.mark.slow
def test_markdown_is_rendered_and_its_html_is_not(
    visitor: Visitor,
    make_task: MakeTask,
    worker: WorkerProcess,
) -> None:
    task_id = make_task("say hi")
    run_id = Run.objects.get().id
    event = {"messageId": "m", "role": "assistant", "content": MARKDOWN, "runId": run_id}
    append_events(task_id, [NewEvent("message", event)])
    open_task(visitor, task_id)
    visitor.wait_for(".chat-prose strong >> text=Mon-Fri 9-18")
    save_screenshot(visitor, "chat-prose")
    tags = evaluate_on_answer(
        visitor, "box => [...box.children].map(child => child.tagName).join(' ')"
    )
    assert tags == "P P OL UL PRE DIV"
    assert visitor.texts(".chat-prose ol li") == ["the desk", "the hall\non the left"]
    assert visitor.texts(".chat-prose em, .chat-prose code") == ["Sat", "10-14"]
    text = evaluate_on_answer(visitor, "box => box.textContent")
    for plain in (
        "2 * 3 * 4",
        "[more](https://example.com/x)",
        "a <b>bold</b> one",
        '<img src=x onerror="window.ran=1">\n  **as it is**',
    ):
        assert plain in text
    assert visitor.texts(".chat-table th") == ["day", "hours"]
    assert visitor.texts(".chat-table td") == ["Mon", "9 | 18", "<i>Sat</i>", ""]
    assert visitor.texts(".chat-message a[href*=example], .chat-prose img, .chat-prose b") == []
    assert visitor.do(visitor.page.evaluate("window.ran")) is None


@pytest.mark.slow
def test_an_earlier_answer_is_rendered_like_a_new_one(
    visitor: Visitor,
    make_task: MakeTask,
    worker: WorkerProcess,
) -> None:
    task_id = make_task("say it is **open**")
    open_task(visitor, task_id)
    worker.work()
    for _ in range(2):  # live from the event log, and after the page is opened again
        visitor.wait_for("[data-role=assistant] .chat-prose strong >> text=open")
        open_task(visitor, task_id)


@pytest.mark.slow
def test_an_earlier_output_is_rendered_like_a_new_one(
    visitor: Visitor,
    make_task: MakeTask,
    worker: WorkerProcess,
) -> None:
    task_id = make_task("output seven; say counted")
    open_task(visitor, task_id)
    worker.work()
    visitor.wait_for("[data-role=assistant] >> text=counted")
    event = visitor.texts("[data-role=output] p")
    assert len(event) == 1
    assert "seven" in event[0]
    open_task(visitor, task_id)
    assert visitor.texts("[data-role=output] p") == event


@pytest.mark.slow
def test_hidden_characters_of_a_reply_are_written_out(
    visitor: Visitor, make_task: MakeTask, worker: WorkerProcess
) -> None:
    task_id = make_task("say a\u202eb\u200bc")
    open_task(visitor, task_id)
    worker.work()
    visitor.wait_for("[data-role=assistant] >> text=a⟨U+202E⟩b⟨U+200B⟩c")
    open_task(visitor, task_id)
    visitor.wait_for("[data-role=assistant] >> text=a⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩b⟨U+200B")


@pytest.mark.slow
def test_incomplete_markdown_loses_no_character(visitor: Visitor, make_task: MakeTask) -> None:
    open_task(visitor, make_task())
    for text in ("", "**", "`a", "# ", "- ", "|", "| a |\n|", "**a", "x" * 30_000):
        event = visitor.do(
            visitor.page.evaluate(
                "text => { const box = document.createElement('div');"
                " const paragraph = document.createElement('p');"
                " box.append(paragraph); paragraph.textContent = text; renderMarkdown(paragraph);"
                " return box.textContent; }",
                text,
            )
        )
        assert event == text


@pytest.mark.slow
def test_a_tool_is_listed_once_on_a_page_opened_during_the_run(
    visitor: Visitor,
    make_task: MakeTask,
    worker: WorkerProcess,
    in_background: Background,
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    task_id = make_task(f"use browser_click; say pressed; until {gate}; say done")
    open_task(visitor, task_id)
    visitor.wait_for("[data-chat-no-tools] >> text=No tool calls yet")
    work_thread = in_background(worker.work)
    visitor.wait_for(".chat-message[data-role=assistant] >> text=pressed")
    open_task(visitor, task_id)
    # The page received the event log again.
    visitor.wait_for(".chat-message[data-role=assistant] >> text=pressed")
    tools = visitor.texts("[data-chat-tools] li > .cty-mono")
    gate.touch()
    work_thread.join(30)
    assert tools == ["browser_click"]
    assert visitor.texts("[data-chat-no-tools]") == []


@pytest.mark.slow
def test_a_failed_tool_shows_its_error_code_live_and_after_a_reload(
    visitor: Visitor, make_task: MakeTask
) -> None:
    task_id = make_task()
    open_task(visitor, task_id)
    call = {"tool": "read_file", "toolCallId": "c1", "runId": "run_1"}
    end_event = {**call, "phase": "end", "ok": False, "errorCode": "E_NOT_FOUND"}
    append_events(
        task_id, [NewEvent("toolUsed", {**call, "phase": "start"}), NewEvent("toolUsed", end_event)]
    )
    for _ in range(2):
        visitor.wait_for("[data-chat-tools] li >> text=read_file")
        visitor.wait_for("[data-chat-tools] .cty-code >> text=E_NOT_FOUND")
        save_screenshot(visitor, "chat-tool-failed")
        open_task(visitor, task_id)


@pytest.mark.slow
def test_no_cell_is_labelled_select_record_on_a_small_screen(
    visitor: Visitor, make_task: MakeTask
) -> None:
    make_task("say hi")
    visitor.do(visitor.page.set_viewport_size({"width": 400, "height": 800}))
    visitor.open("/admin/runs/task/")
    labels = visitor.do(
        visitor.page.eval_on_selector_all(
            "#result_list [data-label]",
            "cells => cells.map(cell => getComputedStyle(cell, '::before').content)",
        )
    )
    assert '"Messages"' in labels
    assert '"Select record"' not in labels


@pytest.mark.slow
def test_a_new_screenshot_is_hidden_while_the_live_page_is_visible(
    visitor: Visitor, make_task: MakeTask
) -> None:
    task_id = make_task()
    visitor.do(visitor.page.route("**/ticket/", lambda route: route.abort()))  # no live page opens
    open_task(visitor, task_id)
    visitor.do(visitor.page.evaluate("document.querySelector('[data-live]').hidden = false"))
    artifact = {"artifactId": "art_1", "kind": "screenshot", "runId": "run_1"}
    append_events(task_id, [NewEvent("artifact.created", artifact)])
    shot = "[data-chat-shot]"
    visitor.do(visitor.page.wait_for_selector(f"{shot}[href*=art_1]", state="attached"))
    assert visitor.do(visitor.page.is_hidden(shot))
