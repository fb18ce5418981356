"""The texts of a page that should be in its language: not data, code, names or numbers."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_SKIPPED_TAGS = {"script", "style", "code", "pre", "time", "option", "textarea", "kbd", "title"}
_SKIPPED_CLASSES = {"material-symbols-outlined", "cty-mono", "cty-chip", "cty-clip", "cty-code"}
_VOID = {"input", "img", "meta", "link", "br", "hr", "col", "source"}
_ATTRIBUTES = ("placeholder", "aria-label", "data-confirm", "data-label")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_WORD = re.compile(r"[A-Za-z]{3,}")
_IDENTIFIER = re.compile(r"\S+[.:/=@-]\S+")  # an action, a scope, an address, a name of a test


class TextParser(HTMLParser):
    """Collects texts, and the attributes that people read or hear."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: set[str] = set()
        self._open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note whether what the element has is to be skipped."""
        given = dict(attrs)
        classes = set((given.get("class") or "").split())
        is_skipped = tag in _SKIPPED_TAGS or bool(classes & _SKIPPED_CLASSES) or "lang" in given
        if tag == "html":
            is_skipped = False
        if not self._is_skipping:
            self.texts.update(given[name] or "" for name in _ATTRIBUTES if given.get(name))
        if tag not in _VOID:
            self._open.append((tag, is_skipped))

    def handle_endtag(self, tag: str) -> None:
        """Leave the element."""
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Collect a text."""
        if not self._is_skipping:
            self.texts.add(" ".join(data.split()))

    @property
    def _is_skipping(self) -> bool:
        return any(is_skipped for _, is_skipped in self._open)


def untranslated(page: str, known: frozenset[str]) -> set[str]:
    """Return the texts of a Chinese page that are English, other than the known names."""
    parser = TextParser()
    parser.feed(page)
    return {
        text
        for text in parser.texts
        if not _CHINESE.search(text)
        and not _IDENTIFIER.fullmatch(text)
        and any(word not in known for word in _WORD.findall(text))
        and "_" not in text
        and "a-name-that-is" not in text  # of `every_page.LONG`
    }
