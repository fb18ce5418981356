"""The readable parts of a kept result, and what a reader wants of them: some pages, some sections,
what matches a pattern, so many characters at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from decisions.errors import InvalidInput

AROUND = 120  # characters shown on each side of a match
MATCH_MAX = 400  # characters shown of a match itself
HEADING_MAX, ADDRESS_MAX = 300, 1000
FRAME = 60  # characters that the JSON around a piece is counted as
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False  # it would write to stderr


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text under it."""

    index: int
    heading: str
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page that a run read; `item` is its place among those of the result."""

    item: int
    url: str
    title: str
    sections: Sequence[Section]


@dataclass(frozen=True, slots=True)
class ContentSelection:
    """What a reader wants.

    Attributes:
        sections: headings (parts of them, in any case) or indexes; None for all.
        grep: a pattern of RE2; only what is around its matches is wanted then.
        outline: headings and lengths alone.
        offset: where to go on, as an answer's nextOffset said.
    """

    item: int | None = None
    sections: Sequence[int | str] | None = None
    grep: str | None = None
    outline: bool = False
    max_chars: int = 8000
    offset: int = 0


def pages_of(value: Any) -> list[Page]:
    """Return the pages in a result, in the order they stand in: every object whose `content` has
    sections is one. Text is one page of one section.
    """
    if isinstance(value, str):
        return [Page(0, "", "", [Section(0, "", 0, value)])]
    return [
        Page(number, str(found.get("url") or ""), str(found.get("title") or ""), _sections(found))
        for number, found in enumerate(_holders(value))
    ]


def _holders(value: Any) -> Iterator[Mapping[str, Any]]:
    todo = [value]
    while todo:
        found = todo.pop()
        if isinstance(found, list):
            todo.extend(reversed(found))
        elif isinstance(found, dict):
            if _is_page(found):
                yield found
            else:
                todo.extend(reversed(found.values()))


def _is_page(found: Mapping[str, Any]) -> bool:
    """Tell whether an object is a page. One that could not be read keeps its place, so that items
    count as in the result.
    """
    content = found.get("content")
    is_item = "url" in found and "success" in found and "content" in found
    return is_item or (isinstance(content, dict) and isinstance(content.get("sections"), list))


def _sections(page: Mapping[str, Any]) -> list[Section]:
    content = page.get("content")
    listed = content.get("sections") if isinstance(content, dict) else None
    return [
        Section(index, str(each.get("heading") or ""), _level(each), str(each.get("text") or ""))
        for index, each in enumerate(listed if isinstance(listed, list) else [])
        if isinstance(each, dict)
    ]


def _level(section: Mapping[str, Any]) -> int:
    level = section.get("level")
    return level if isinstance(level, int) and level > 0 else 0


def select_content(pages: Sequence[Page], wish: ContentSelection) -> dict[str, Any]:
    """Return {totalPages, pages[], matches[], nextOffset}: what was wished for, from `offset` on,
    until about max_chars characters are used up.

    Raises:
        InvalidInput: No such item, or a pattern that RE2 does not take.
    """
    if wish.item is not None and wish.item >= len(pages):
        there = f"items 0 to {len(pages) - 1}" if pages else "no pages"
        raise InvalidInput(f"item: there is no page {wish.item}; the result has {there}.")
    wanted = [
        (page, section)
        for page in pages
        if wish.item in (None, page.item)
        for section in page.sections
        if _is_wanted(section, wish.sections)
    ]
    answer: dict[str, Any] = {"totalPages": len(pages), "pages": [], "matches": []}
    following = _matches if wish.grep is not None else _texts
    return answer | {"nextOffset": following(wanted, wish, answer)}


def _is_wanted(section: Section, wanted: Sequence[int | str] | None) -> bool:
    if wanted is None:
        return True
    heading = section.heading.casefold()
    return any(
        name.casefold() in heading if isinstance(name, str) else name == section.index
        for name in wanted
    )


def _texts(
    wanted: Sequence[tuple[Page, Section]], wish: ContentSelection, answer: dict[str, Any]
) -> int | None:
    """Add sections; each counts one for its heading and one a character towards the offset."""
    left, at = wish.max_chars, 0
    shown: list[dict[str, Any]] = answer["pages"]
    for page, section in wanted:
        text = "" if wish.outline else section.text
        if at + 1 + len(text) <= wish.offset:
            at += 1 + len(text)
            continue
        start = max(0, wish.offset - at - 1)
        is_new = not shown or shown[-1]["item"] != page.item
        head = _page_head(page) if is_new else {}
        left -= FRAME + len(section.heading[:HEADING_MAX]) + sum(map(len, map(str, head.values())))
        if shown and left <= 0:
            return max(at, wish.offset)
        piece = text[start : start + max(left, 1)]
        if is_new:
            shown.append({**head, "sections": []})
        shown[-1]["sections"].append(_shown(section, start, None if wish.outline else piece))
        left -= len(piece)
        if start + len(piece) < len(text):
            return at + 1 + start + len(piece)
        at += 1 + len(text)
    return None


def _page_head(page: Page) -> dict[str, Any]:
    return {"item": page.item, "url": page.url[:ADDRESS_MAX], "title": page.title[:HEADING_MAX]}


def _shown(section: Section, start: int, piece: str | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "section": section.index,
        "heading": section.heading[:HEADING_MAX],
        "level": section.level,
        "characters": len(section.text),
    }
    return shown if piece is None else {**shown, "start": start, "text": piece}


def _matches(
    wanted: Sequence[tuple[Page, Section]], wish: ContentSelection, answer: dict[str, Any]
) -> int | None:
    """Add matches, each with what is around it; the offset counts them."""
    try:
        pattern = re2.compile(wish.grep, _OPTIONS)
    except re2.error as error:
        told = error.args[0] if error.args else "it is no pattern"
        told = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
        raise InvalidInput(
            f"grep: {told[:200]} (RE2 has no lookaround, no backreference)."
        ) from None
    left, seen = wish.max_chars, 0
    for page, section in wanted:
        for match in _found(pattern, section):
            seen += 1
            if seen <= wish.offset:
                continue
            left -= FRAME + len(match["text"]) + len(match["heading"])
            if answer["matches"] and left <= 0:
                return seen - 1
            answer["matches"].append({"item": page.item, **match})
    return None


def _found(pattern: Any, section: Section) -> Iterator[dict[str, Any]]:
    shown_to = 0  # a match that was seen around another is not shown again
    for match in pattern.finditer(section.text):
        if match.end() == match.start() or match.start() < shown_to:
            continue
        shown_to = min(match.end(), match.start() + MATCH_MAX) + AROUND
        yield {
            "section": section.index,
            "heading": section.heading[:HEADING_MAX],
            "at": match.start(),
            "text": section.text[max(0, match.start() - AROUND) : shown_to],
        }
