"""Select parts of a stored result: pages, sections, or matches of a pattern, with pagination."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import re2

from decisions.foundation.errors import InvalidInput
from runs.task_templates.page_texts import has_sections, is_page

CONTEXT_MAX = 1000  # characters after a match, half as many before it
# By default: so many for up to so many matches; for more, the least, and no headings.
CONTEXTS = ((1, 400), (10, 120), (30, 60))
LEAST_CONTEXT = 20
MATCH_MAX = 400  # characters of a match itself
HEADING_MAX, ADDRESS_MAX = 300, 1000
FOUND_OVERHEAD_CHARACTERS = 12
OVERHEAD_CHARACTERS = 60  # counted for the JSON around each text
MATCH_OVERHEAD_CHARACTERS = 40
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
    """A page that a run read; `item` is its index in the result."""

    item: int
    url: str
    title: str
    sections: Sequence[Section]


@dataclass(frozen=True, slots=True)
class ContentSelection:
    """The parts that a reader requests.

    Attributes:
        item: only this page; None for all.
        sections: parts of headings (case-insensitive) or indexes; None for all sections.
        grep: an RE2 pattern; only its matches with their context are returned.
        context: characters after a match, half as many before it; None: fewer, the more matches
            there are.
        only_matches: of matches, only what the pattern's groups match (without groups, all of it).
        outline: only headings and lengths.
        offset: the nextOffset of the previous answer; 0 to start.
    """

    item: int | None = None
    sections: Sequence[int | str] | None = None
    grep: str | None = None
    context: int | None = None
    only_matches: bool = False
    outline: bool = False
    max_chars: int = 8000
    offset: int = 0


def pages_of(value: Any) -> list[Page]:
    """Return the pages in a result, in order: every object whose `content` has sections. A text is
    one page with one section.
    """
    if isinstance(value, str):
        return [Page(0, "", "", [Section(0, "", 0, value)])]
    return [
        Page(index, str(page.get("url") or ""), str(page.get("title") or ""), _sections(page))
        for index, page in enumerate(_find_pages(value))
    ]


def _find_pages(value: Any) -> Iterator[Mapping[str, Any]]:
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(reversed(node))
        elif isinstance(node, dict):
            if is_page(node):
                yield node
            else:
                stack.extend(reversed(node.values()))


def _sections(page: Mapping[str, Any]) -> list[Section]:
    content = page.get("content")
    listed = content["sections"] if isinstance(content, dict) and has_sections(content) else []
    return [
        Section(index, row["heading"], _level(row), row["text"]) for index, row in enumerate(listed)
    ]


def _level(section: Mapping[str, Any]) -> int:
    level = section.get("level")
    return level if isinstance(level, int) and level > 0 else 0


def select_content(pages: Sequence[Page], selection: ContentSelection) -> dict[str, Any]:
    """Return {totalPages, nextOffset?} with the selected parts from `offset` on, up to about
    max_chars characters: with a pattern its `matches`, or `found` if only those are requested; else
    `pages`. nextOffset is left out at the end.

    Raises:
        InvalidInput: There is no such item, RE2 rejects the pattern, or only matches or their
            context are requested without a pattern.
    """
    if selection.grep is None and (selection.only_matches or selection.context is not None):
        name = "onlyMatches" if selection.only_matches else "context"
        raise InvalidInput(f"{name}: give the pattern as grep.")
    if selection.item is not None and selection.item >= len(pages):
        existing = f"items 0 to {len(pages) - 1}" if pages else "no pages"
        raise InvalidInput(f"item: there is no page {selection.item}; the result has {existing}.")
    selected = [
        (page, section)
        for page in pages
        if selection.item in (None, page.item)
        for section in page.sections
        if _is_selected(section, selection.sections)
    ]
    answer: dict[str, Any] = {"totalPages": len(pages)}
    if selection.grep is None:
        answer["pages"] = []
        next_offset = _add_texts(selected, selection, answer)
    elif selection.only_matches:
        answer["found"] = {}
        next_offset = _add_found(selected, selection, answer)
    else:
        answer["matches"] = []
        next_offset = _add_matches(selected, selection, answer)
    return answer if next_offset is None else answer | {"nextOffset": next_offset}


def _is_selected(section: Section, names: Sequence[int | str] | None) -> bool:
    if names is None:
        return True
    heading = section.heading.casefold()
    return any(
        name.casefold() in heading if isinstance(name, str) else name == section.index
        for name in names
    )


def _add_texts(
    selected: Sequence[tuple[Page, Section]], selection: ContentSelection, answer: dict[str, Any]
) -> int | None:
    """Add sections to the answer; return the next offset, or None at the end.

    An offset counts one for each heading and one for each character of text.
    """
    left, position = selection.max_chars, 0
    pages: list[dict[str, Any]] = answer["pages"]
    for page, section in selected:
        text = "" if selection.outline else section.text
        if position + 1 + len(text) <= selection.offset:
            position += 1 + len(text)
            continue
        start = max(0, selection.offset - position - 1)
        is_new = not pages or pages[-1]["item"] != page.item
        head = _page_head(page) if is_new else {}
        left -= (
            OVERHEAD_CHARACTERS
            + len(section.heading[:HEADING_MAX])
            + sum(map(len, map(str, head.values())))
        )
        if pages and left <= 0:
            return max(position, selection.offset)
        part = text[start : start + max(left, 1)]
        if is_new:
            pages.append({**head, "sections": []})
        entry = _section_entry(section, start, None if selection.outline else part)
        pages[-1]["sections"].append(entry)
        left -= len(part)
        if start + len(part) < len(text):
            return position + 1 + start + len(part)
        position += 1 + len(text)
    return None


def _page_head(page: Page) -> dict[str, Any]:
    return {"item": page.item, "url": page.url[:ADDRESS_MAX], "title": page.title[:HEADING_MAX]}


def _section_entry(section: Section, start: int, part: str | None) -> dict[str, Any]:
    """Return a section for an answer: in an outline (no `part`) with its length, else with the part
    of its text that begins at `start`, and with its length and `start` unless the part is all.
    """
    entry: dict[str, Any] = {
        "section": section.index,
        "heading": section.heading[:HEADING_MAX],
        "level": section.level,
    }
    size = {"characters": len(section.text)}
    if part is None:
        return entry | size
    return entry | ({} if part == section.text else size | {"start": start}) | {"text": part}


def _add_matches(
    selected: Sequence[tuple[Page, Section]], selection: ContentSelection, answer: dict[str, Any]
) -> int | None:
    """Add matches with their context to the answer; return the next offset, which counts matches,
    or None at the end.
    """
    pattern = _pattern(selection)
    default, is_many = _default_context(pattern, [section for _, section in selected])
    context = default if selection.context is None else selection.context
    left, count = selection.max_chars, 0
    for page, section in selected:
        place = {} if is_many else _place(section)
        for text in _find_matches(pattern, section, context):
            count += 1
            if count <= selection.offset:
                continue
            left -= MATCH_OVERHEAD_CHARACTERS + len(text) + len(str(place.get("heading", "")))
            if answer["matches"] and left <= 0:
                return count - 1
            answer["matches"].append({"item": page.item, **place, "text": text})
    return None


def _place(section: Section) -> dict[str, Any]:
    """Return what names a section in `sections`."""
    if section.heading:
        return {"heading": section.heading[:HEADING_MAX]}
    return {"section": section.index}


def _add_found(
    selected: Sequence[tuple[Page, Section]], selection: ContentSelection, answer: dict[str, Any]
) -> int | None:
    """Add what the pattern's groups match to `found`, a list for each page by its item; return the
    next offset, which counts matches, or None at the end.
    """
    pattern = _pattern(selection)
    left, count = selection.max_chars, 0
    for page, section in selected:
        for match in pattern.finditer(section.text):
            if match.end() == match.start():
                continue
            count += 1
            if count <= selection.offset:
                continue
            parts = [(part or "")[:MATCH_MAX] for part in match.groups()]
            parts = parts or [match.group()[:MATCH_MAX]]
            left -= FOUND_OVERHEAD_CHARACTERS + sum(map(len, parts))
            if answer["found"] and left <= 0:
                return count - 1
            found = answer["found"].setdefault(str(page.item), [])
            found.append(parts[0] if len(parts) == 1 else parts)
    return None


def _pattern(selection: ContentSelection) -> Any:
    try:
        return re2.compile(selection.grep, _OPTIONS)
    except re2.error as error:
        reason = error.args[0] if error.args else "it is no pattern"
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidInput(
            f"grep: {reason[:200]} (RE2 has no lookaround and no backreferences)."
        ) from None


def _default_context(pattern: Any, sections: Sequence[Section]) -> tuple[int, bool]:
    """Return the context that suits the number of matches in the whole selection, so that it is the
    same for each `offset`; and whether there are too many for their headings.
    """
    found = (match for section in sections for match in pattern.finditer(section.text))
    most = CONTEXTS[-1][0]
    number = sum(1 for _ in islice(found, most + 1))
    context = next((size for up_to, size in CONTEXTS if number <= up_to), LEAST_CONTEXT)
    return context, number > most


def _find_matches(pattern: Any, section: Section, context: int) -> Iterator[str]:
    end = 0  # of the last match with its context; matches inside that are left out
    for match in pattern.finditer(section.text):
        if match.end() == match.start() or match.start() < end:
            continue
        end = min(match.end(), match.start() + MATCH_MAX) + context
        yield section.text[max(0, match.start() - context // 2) : end].strip()
