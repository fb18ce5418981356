"""The texts of a page that should be in its language: not data, code, names or numbers."""

from __future__ import annotations

import re
from html.parser import HTMLParser

# Code, ids, addresses and JSON; what the visitor entered; the language switch.
_SKIPPED_TAGS = {"script", "style", "code", "pre", "textarea", "kbd"}
_SKIPPED_CLASSES = {"material-symbols-outlined", "cty-mono", "cty-code"}
_VOID = {"input", "img", "meta", "link", "br", "hr", "col", "source"}
_ATTRIBUTES = ("title", "placeholder", "aria-label", "alt", "data-confirm", "data-label")
# A tool, a scope, an address, a host, an id, a label, a constant, a parameter, a version.
_IDENTIFIER = re.compile(
    r"[\x21-\x7e]*[A-Za-z0-9](?:[_./=@:~-]+[A-Za-z0-9*]|_[…*])[\x21-\x7e]*"
    r"|[A-Z][A-Z_]{2,}|[a-z]+[A-Z]\w*"
)
_WORD = re.compile(r"[A-Za-z]{3,}")
_UNIT = re.compile(r"\d (?:ms|min|s|h|d)\b")


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
        if not self._is_skipping and not is_skipped:
            # The title of an input's label is the input's name in the API.
            names = [name for name in _ATTRIBUTES if (tag, name) != ("label", "title")]
            self.texts.update(given[name] or "" for name in names if given.get(name))
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


def untranslated(page: str, known: frozenset[str], data: tuple[str, ...] = ()) -> set[str]:
    """Return the texts of a Chinese page with English words or units in them.

    Args:
        known: words that are no English text: names, and words of the rows of the test.
        data: whole texts of the rows, which a text may contain.
    """
    parser = TextParser()
    parser.feed(page)
    return {text for text in parser.texts if _is_english(text, known, data)}


def _is_english(text: str, known: frozenset[str], data: tuple[str, ...]) -> bool:
    if _UNIT.search(text):
        return True
    for one in data:
        text = text.replace(one, "") if " " in one else text
    text = _IDENTIFIER.sub(" ", text)
    for one in data:
        text = text.replace(one, " ")
    return any(word not in known for word in _WORD.findall(text))
