"""A page that is shown in Chinese has no English text of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from runs.admin.new_run.fields import FormFields, InputField
from runs.admin.new_run.shapes import shape_of
from runs.admin.new_run.words import explained
from runs.models import Run
from runs.task_templates.registry import list_templates
from tests.support.admin.every_page import (
    LONG,
    further_pages,
    pages,
    pages_of_runs,
    rows_of_every_kind,
)
from tests.support.admin.page_texts import untranslated

# Names of things that have none in Chinese: of products, formats and protocols.
NAMES = (
    *("Continuity", "English", "Webhook", "Docker", "Celery", "PostgreSQL", "Redis", "Markdown"),
    *("JSON", "URL", "URLs", "MIME", "SHA", "UTC", "MAC", "CSV", "HTTP", "HTTPS", "MCP", "API"),
    *("CSS", "Schema", "Origin", "Enter", "Unicode", "Cookie", "Token", "token"),
    *("http", "https", "plugin", "stdio", "true", "false", "Control", "Mac", "Command"),
)
# Words of the rows that the test creates, and examples in forms.
OF_ROWS = ("boss", "alice", "local", "remote", "Talk", "async", "made", "test", "text", "host")
EXAMPLES = ("env", "prod", "team", "confirm", "chat")
KNOWN = frozenset((*NAMES, *OF_ROWS, *EXAMPLES))
QUESTION = "Which account do you mean?"
OF_STEPS = ("read /", "read https", "Title 0", "step 1 took too long")
DATA = (LONG, QUESTION, "Find ", "made by a test", "manage.py worker", "MCP over stdio", *OF_STEPS)


def of_test_templates() -> tuple[str, ...]:
    """Return the names and descriptions of the templates of tests."""
    of_tests = [one for one in list_templates() if one.template_id.startswith("test_")]
    return tuple(text for one in of_tests for text in (one.description, one.name))


@pytest.fixture(autouse=True)
def in_english() -> Iterator[None]:
    """Leave the language of this thread as it was."""
    with translation.override("en"):
        yield


@pytest.mark.slow
def test_no_page_in_chinese_has_an_english_text(
    superuser_client: Client,
    make_run_with_steps: Callable[..., Run],
    make_artifact: Callable[..., str],
    make_task: Callable[..., str],
    tmp_path: Path,
    settings: Any,
) -> None:
    settings.WORKSPACE_ROOTS = (tmp_path,)
    superuser_client.cookies["continuity_language"] = "zh-hans"
    data = (*DATA, *of_test_templates())
    english: dict[str, set[str]] = {}
    for is_empty in (True, False):
        if not is_empty:
            rows_of_every_kind(make_run_with_steps, make_artifact, make_task, tmp_path)
            waiting_runs(make_run_with_steps)
        for path in [*pages(), *pages_of_runs(), *([] if is_empty else further_pages())]:
            page = superuser_client.get(path).content.decode()
            if found := untranslated(page, KNOWN, data):
                english[path] = found
    assert english == {}


def waiting_runs(make_run_with_steps: Callable[..., Run]) -> None:
    """Create a run that waits for each thing that a run can wait for, and one with an answer."""
    later = int((datetime.now(UTC) + timedelta(minutes=25)).timestamp() * 1000)
    waits: list[dict[str, Any]] = [
        {"type": "answer", "question": QUESTION, "suggestions": [QUESTION], "expiresAt": later},
        {"type": "answer", "question": "", "expiresAt": later},
        {"type": "takeover", "question": ""},
        {"type": "confirmation", "question": "", "expiresAt": later},
    ]
    for waiting_for in waits:
        make_run_with_steps(
            ["succeeded", "pending"],
            status="running",
            ready=False,
            template_id="agent_task",
            inputs={"goal": LONG},
            waiting_for=waiting_for,
        )


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/admin/runs/run/new/batch_extract_pages/", {"inputs.concurrency": "many"}),
        ("/admin/runs/run/new/search_extract/", {"inputs.startUrl": "shop", "seconds": "9999"}),
        ("/admin/runs/run/new/replay_success_path/", {"inputs.slots": "{"}),
        ("/admin/runs/task/new/", {"content": ""}),
        ("/admin/runs/webhook/new/", {"name": "", "url": "ftp://shop.example/"}),
        ("/admin/decisions/token/new/", {"name": ""}),
        ("/admin/decisions/policyrule/new/", {"tool": "", "reason": ""}),
        ("/admin/runners/executiontarget/new/", {"name": "", "endpoint": "shop"}),
    ],
)
def test_what_a_refused_form_says_is_in_chinese(
    superuser_client: Client, path: str, form: dict[str, str]
) -> None:
    superuser_client.cookies["continuity_language"] = "zh-hans"
    page = superuser_client.post(path, form, follow=True).content.decode()
    assert untranslated(page, KNOWN | {"many", "shop"}, DATA) == set()


def test_each_input_of_a_template_has_a_title_and_an_explanation_in_chinese() -> None:
    with translation.override("zh-hans"):
        for template in list_templates():
            if template.is_listed and not template.template_id.startswith("test_"):
                fields = FormFields(
                    shape_of(template.inputs_schema), {}, {}, {}, template.template_id
                )
                english = [
                    text for text in texts_of(fields.fields) if text and not is_chinese(text)
                ]
                assert english == [], template.template_id
                assert is_chinese(explained(template.description))


def texts_of(fields: Sequence[InputField]) -> Iterator[str]:
    """Yield the texts of fields and of the fields in them."""
    for one in fields:
        yield from (one.label, one.help, *(label for _, label in one.choices))
        inner = [*one.children, *([one.new_row] if one.new_row else [])]
        yield from texts_of(inner)


def is_chinese(text: str) -> bool:
    """Return whether a text has Chinese characters."""
    return any("\u4e00" <= char <= "\u9fff" for char in text)
