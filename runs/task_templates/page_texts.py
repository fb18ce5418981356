"""The texts of the pages in a result: stored whole with the run, and cut in answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from runners.browser.parameters import ExtractOptions
from runners.browser.reading.page_text import WHOLE_CHARACTERS, cut_content
from runs.task_templates.truncation import shorten_result

ALL_PAGES_CHARACTERS = 20_000_000  # of the texts of all pages of a run
MARKS_BYTES = 200  # of `truncated` and `artifactId`, which a cut result has
LEAST_CHARACTERS = 50_000  # of a page, however many pages the run has


def shown_characters(inputs: Mapping[str, Any]) -> int:
    """Return how many characters of each page's text an answer shows."""
    options = ExtractOptions.model_validate(inputs.get("extract") or {})
    return options.max_content_length


def kept_page(page: Mapping[str, Any], pages: int) -> dict[str, Any]:
    """Return a page as a run of so many pages keeps it: with its whole text, or with the beginning
    and a warning if the text is longer than a run can keep.
    """
    limit = max(LEAST_CHARACTERS, min(WHOLE_CHARACTERS, ALL_PAGES_CHARACTERS // pages))
    content, offset = cut_content(page.get("content"), limit)
    if offset is None and not (content or {}).get("truncated"):
        return dict(page)
    warning = f"The page's text is too long: only its first {limit} characters were kept."
    return {**page, "content": content, "warnings": [*page["warnings"], warning]}


def cut_pages(value: Any, limit: int, budget: int) -> tuple[Any, dict[str, Any] | None]:
    """Return a result with at most `limit` characters of each page's text, and with less if it is
    over `budget` bytes of JSON, and the item and offset at which the cut page reads on; the outline
    if several pages are cut.

    Each cut `content` has `readOn`: the item and offset for `read_page_content`.
    """
    cutter = _Cutter(limit)
    short = cutter.cut(value)
    while cutter.has_texts and limit > 0 and len(orjson.dumps(short)) > budget:
        limit //= 2
        cutter = _Cutter(limit)
        short = cutter.cut(value)
    return short, cutter.read_on


def shown_result(
    whole: Mapping[str, Any],
    limit: int,
    budget: int,
    artifact_id: str,
    schema: Mapping[str, Any] | None,
) -> tuple[Mapping[str, Any], dict[str, Any] | None]:
    """Return a result as an answer of at most `budget` bytes shows it, and the arguments of
    `read_page_content` that read on if the texts of pages were cut.

    If anything was cut, the result is marked with `truncated` and the `artifactId` of the whole.
    """
    shown, read_on = cut_pages(whole, limit, budget - MARKS_BYTES)
    result = shorten_result(shown, budget, artifact_id, schema)
    if read_on is not None:
        result = {**result, "truncated": True, "artifactId": artifact_id}
    return result, read_on


@dataclass(slots=True)
class _Cutter:
    """Numbers the pages as `runs.queries.page_content` does; `has_texts` is whether any has one."""

    limit: int
    item: int = 0
    read_on: dict[str, Any] | None = field(default=None)
    has_texts: bool = False

    def cut(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.cut(item) for item in value]
        if not isinstance(value, dict):
            return value
        if not is_page(value):
            return {name: self.cut(item) for name, item in value.items()}
        item, self.item = self.item, self.item + 1
        content = value["content"]
        if not has_sections(content):
            return value
        self.has_texts = True
        cut, offset = cut_content(content, self.limit)
        if offset is None:
            return value
        read_on = {"item": item, "offset": offset}
        self.read_on = read_on if self.read_on is None else {"outline": True}
        return {**value, "content": {**(cut or {}), "readOn": read_on}}


def is_page(node: Mapping[str, Any]) -> bool:
    """Return whether an object of a result is a page, also one that could not be read."""
    is_item = "url" in node and "success" in node and "content" in node
    return is_item or has_sections(node.get("content"))


def has_sections(content: object) -> bool:
    """Return whether a value is the content of a page: its text in sections, each with a heading.

    Answers of models and runners may have the same names with other values.
    """
    sections = content.get("sections") if isinstance(content, dict) else None
    return isinstance(sections, list) and all(
        isinstance(row, dict)
        and isinstance(row.get("heading"), str)
        and isinstance(row.get("text"), str)
        for row in sections
    )
