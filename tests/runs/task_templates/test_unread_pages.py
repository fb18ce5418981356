"""A batch warns of pages whose text shows that they were not really read."""

from __future__ import annotations

import pytest

from runs.task_templates.base import StepView
from runs.task_templates.builtin.batch_extract_pages import BatchExtractPages

URL = "https://pages.example/1"
ARTICLE = "A page about 404 errors and loading. " * 4


@pytest.mark.parametrize(
    ("title", "text", "said"),
    [
        ("App", "Loading…", "is still loading"),
        ("", "", "has no text"),
        ("Just a moment...", "Checking your browser before accessing.", "checks for robots"),
        ("Page not found", "Sorry, it is gone.", "was not found"),
        ("Article", ARTICLE, None),
        ("Shop", "Order now", None),
    ],
)
def test_a_page_that_seems_not_to_be_read_has_a_warning(
    title: str, text: str, said: str | None
) -> None:
    sections = [{"heading": title, "level": 1, "text": text}] if title else []
    page = {"title": title, "content": {"sections": sections, "truncated": False}, "warnings": []}
    step = StepView(0, URL, {"url": URL}, succeeded=True, output=page, error=None)
    warnings = BatchExtractPages().conclude({"urls": [URL]}, [step]).warnings
    assert bool(warnings) == bool(said)
    assert all(f"{URL}: The page" in warning and str(said) in warning for warning in warnings)
