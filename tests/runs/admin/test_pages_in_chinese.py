"""A page that is shown in Chinese has no English text of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from runs.models import Run
from tests.support.admin.every_page import pages, rows_of_every_kind
from tests.support.admin.page_texts import untranslated

pytest_plugins = [
    "tests.support.admin.admin_fixtures",
    "tests.support.runs.task_fixtures",
]
# Names of things that have none in Chinese, and words of the rows that the test creates.
NAMES = ("Continuity", "English", "Webhook", "JSON", "URL", "MIME", "SHA", "UTC", "MAC", "CSV")
OF_ROWS = (
    "boss",
    "alice",
    "local",
    "remote",
    "Talk",
    "async",
    "Find",
    "made",
    "test",
    "text",
    "time",
)
EXAMPLES = ("env", "prod", "team", "confirm", "chat", "Cookie", "min")
KNOWN = frozenset((*NAMES, *OF_ROWS, *EXAMPLES))


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
    english: dict[str, set[str]] = {}
    for is_empty in (True, False):
        if not is_empty:
            rows_of_every_kind(make_run_with_steps, make_artifact, make_task, tmp_path)
        for path in pages():
            superuser_client.cookies["continuity_language"] = "zh-hans"
            page = superuser_client.get(path).content.decode()
            if found := untranslated(page, KNOWN):
                english[path] = found
    assert english == {}
