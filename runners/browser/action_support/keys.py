"""The keys of a keyboard in CDP's terms (US layout, like Playwright's)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

Key = Mapping[str, Any]
SHIFT = 8
_DIGITS = dict(zip("0123456789", ")!@#$%^&*(", strict=True))
_MARKS = {
    ";": (":", "Semicolon", 186),
    "=": ("+", "Equal", 187),
    ",": ("<", "Comma", 188),
    "-": ("_", "Minus", 189),
    ".": (">", "Period", 190),
    "/": ("?", "Slash", 191),
    "`": ("~", "Backquote", 192),
    "[": ("{", "BracketLeft", 219),
    "\\": ("|", "Backslash", 220),
    "]": ("}", "BracketRight", 221),
    "'": ('"', "Quote", 222),
}
NAMED: Mapping[str, Key] = {
    "Enter": {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "Delete": {"key": "Delete", "code": "Delete", "windowsVirtualKeyCode": 46},
}


@cache
def keyboard() -> Mapping[str, Key]:
    """Return the keys by the character that they type."""
    return {str(key["text"]): key for key in _keys()}


def _keys() -> Iterator[Key]:
    yield _key(" ", "Space", 32)
    for letter in "abcdefghijklmnopqrstuvwxyz":
        code, number = f"Key{letter.upper()}", ord(letter.upper())
        yield _key(letter, code, number)
        yield _key(letter.upper(), code, number, SHIFT)
    for digit, shifted in _DIGITS.items():
        yield _key(digit, f"Digit{digit}", ord(digit))
        yield _key(shifted, f"Digit{digit}", ord(digit), SHIFT)
    for mark, (shifted, code, number) in _MARKS.items():
        yield _key(mark, code, number)
        yield _key(shifted, code, number, SHIFT)


def _key(text: str, code: str, number: int, modifiers: int = 0) -> Key:
    return {
        "key": text,
        "code": code,
        "windowsVirtualKeyCode": number,
        "text": text,
        "modifiers": modifiers,
    }
