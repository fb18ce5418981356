"""The text of a page: kept whole, and cut only for an answer, which says where to read on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from wcwidth import grapheme_boundary_before

from runners.browser.parameters import ExtractOptions
from runners.tools.base import SaveArtifact

WHOLE_CHARACTERS = 2_000_000  # of a page's text; what follows is not read


def reading_whole(extract: ExtractOptions) -> ExtractOptions:
    """Return the options of a read that keeps the whole text."""
    return extract.model_copy(update={"max_content_length": WHOLE_CHARACTERS})


def cut_content(
    content: Mapping[str, Any] | None, limit: int
) -> tuple[dict[str, Any] | None, int | None]:
    """Return content with at most `limit` characters of headings and text, and the `offset` at
    which `read_page_content` reads on; None if nothing was left out.
    """
    if content is None:
        return None, None
    sections: list[dict[str, Any]] = []
    left, offset = limit, 0
    total = sum(len(row["heading"]) + len(row["text"]) for row in content["sections"])
    if total <= limit:
        return dict(content), None
    for row in content["sections"]:
        if left <= len(row["heading"]):
            break
        text = _cut(row["text"], left - len(row["heading"]))
        sections.append({**row, "text": text})
        offset += 1 + len(text)
        left -= len(row["heading"]) + len(text)
        if len(text) < len(row["text"]):
            break
    total = content.get("totalCharacters", total)  # of content that was cut before
    cut = {**content, "sections": sections, "truncated": True, "totalCharacters": total}
    return cut, offset


def _cut(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text, without a part of an emoji or a letter."""
    if len(text) <= limit:
        return text
    return text[: grapheme_boundary_before(text, limit + 1)]


async def fit_content(page: dict[str, Any], limit: int, save: SaveArtifact) -> dict[str, Any]:
    """Return a page with at most `limit` characters of content. If that leaves text out, the whole
    page is stored, and `content.readOn` has the arguments of the `read_page_content` call that
    reads on.
    """
    cut, offset = cut_content(page["content"], limit)
    if offset is None:
        return page
    artifact_id = await save(orjson.dumps(page), name="page.json", mime_type="application/json")
    read_on = {"artifactId": artifact_id, "offset": offset}
    return {**page, "content": {**(cut or {}), "readOn": read_on}}
